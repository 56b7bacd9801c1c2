//go:build linux || darwin

package monitor

import (
	"fmt"
	"sync"
	"time"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/machine/memory"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A memorySum is how much memory the holders of each account take, as last read.
type memorySum struct {
	limit int64 // max_buffer_total

	mu     sync.Mutex
	bytes  map[uint32]uint64
	readAt time.Time
}

// memoryLimit returns max_buffer_total in bytes.
func memoryLimit(share configs.Share) (int64, error) {
	state, err := memory.Read()
	if err != nil && share.Percent > 0 {
		return 0, fmt.Errorf("max_buffer_total is %v, and the memory is not known: %w", share, err)
	}
	return int64(share.Of(configs.Bytes(state.Total))), nil
}

// checkMemory refuses an account a new session if the output of its sessions takes max_buffer_total or, while the
// output of all sessions does, more than an equal part for each account. So an account is refused only for what its
// own holders take. The holders of other accounts are not asked: the system says what they take. What the account's
// own holders claim can only add to that.
func (s *Sessions) checkMemory(uid uint32, own []entry) error {
	var claimed uint64
	for _, e := range own {
		claimed += e.state.Memory
	}
	accounts := s.accountMemory()
	mine := max(claimed, accounts[uid])
	total, count := mine, 1
	for other, bytes := range accounts {
		if other != uid {
			total += bytes
			count++
		}
	}
	if limit := uint64(s.memory.limit); total < limit || mine*uint64(count) < limit {
		return nil
	}
	return errorf(wire.CodeFailed,
		"the sessions of this account keep %d MiB of output, and max_buffer_total is %v: end one with qt kill",
		mine>>20, s.settings().MaxBufferTotal)
}

// accountMemory returns the memory that the holders of each account take.
func (s *Sessions) accountMemory() map[uint32]uint64 {
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	if now := time.Now(); now.Sub(s.memory.readAt) >= memoryAge {
		s.memory.bytes, s.memory.readAt = s.holders.Memory(), now
	}
	return s.memory.bytes
}
