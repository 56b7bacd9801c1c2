//go:build linux || darwin

package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// memoryAge is how old the sum of all sessions' memory may be when a new session
	// is checked against max_buffer_total. Asking all holders takes milliseconds; a
	// session fills its buffer in seconds.
	memoryAge = 5 * time.Second

	// memoryTimeout bounds how long the server waits for the answers of all
	// holders. Those that come later do not count.
	memoryTimeout = time.Second
)

// A memorySum is how much memory the output of all sessions takes, as last asked.
type memorySum struct {
	mu      sync.Mutex
	bytes   int64
	askedAt time.Time
}

// checkMemory refuses a new session while the output of all sessions takes
// max_buffer_total or more.
func (s *Server) checkMemory(ctx context.Context) error {
	limit := int64(s.settings.MaxBufferTotal.Bytes)
	if limit <= 0 {
		return nil
	}
	if sum := s.outputMemory(ctx); sum >= limit {
		return &wire.Error{Code: wire.CodeFailed, Text: fmt.Sprintf("sessions on this server keep %d MiB of output, and max_buffer_total is %v", sum>>20, s.settings.MaxBufferTotal)}
	}
	return nil
}

// outputMemory returns the memory that the output of all sessions takes, in bytes. It
// asks the holders if its last answer is older than memoryAge.
func (s *Server) outputMemory(ctx context.Context) int64 {
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	if now := time.Now(); now.Sub(s.memory.askedAt) < memoryAge {
		return s.memory.bytes
	}
	asking, cancel := context.WithTimeout(ctx, memoryTimeout)
	defer cancel()
	var keys []sessionKey
	for _, uid := range s.holders.Accounts() {
		keys = append(keys, s.keys(uid)...)
	}
	var sum int64
	for _, e := range s.ask(asking, &wire.Open{}, keys) {
		// A holder runs as its account: it may claim any number.
		sum += int64(min(e.state.Memory, uint64(s.settings.BufferSize.Bytes)))
	}
	if ctx.Err() == nil { // or the client is gone, and the sum is not complete
		s.memory.bytes, s.memory.askedAt = sum, time.Now()
	}
	return sum
}
