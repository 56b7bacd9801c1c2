//go:build linux || darwin

package server

import (
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A key, and a piece of a stream, passes several goroutines, one after the other. With more than one processor each
// hand-over wakes a thread that finds nothing to do, which costs more than the key itself, and doubles what a flood
// costs. So a daemon uses one processor while that has time left, and all of them while it has not.
//
// It looks at its processor time after each workSpan pieces of work, but not within lookInterval. A piece is a
// packet, or workBytes of a stream. Time in which it waits for a processor does not count: a daemon that gets
// less than fullShare of one, because others use it, stays on one. So does a daemon whose system does not tell
// the processor time.
const (
	workSpan   = 256
	workBytes  = 4 << 10
	acceptWork = 4 // pieces that a connection's beginning is as much as

	// fullShare is the part of a processor's time from which on all are used. The same work takes up to twice
	// as much on several, so that less than oneShare leaves time on one.
	fullShare = 0.8
	oneShare  = 0.7
)

// processors sets how many processors this process uses.
type processors struct {
	set  func(int) int        // runtime.GOMAXPROCS, or nil to change nothing
	used func() time.Duration // the processor time of this process
	all  int
	work atomic.Int64 // pieces

	mu       sync.Mutex
	busy     bool      // all are used
	lookedAt time.Time // when the last span began
	before   time.Duration
}

// SaveProcessors makes this process use one processor while that has time left. It is called before Serve.
func (s *Server) SaveProcessors() { s.processors.begin(runtime.GOMAXPROCS, processorTime) }

func (p *processors) begin(set func(int) int, used func() time.Duration) {
	p.set, p.used, p.all, p.lookedAt, p.before = set, used, set(0), time.Now(), used()
	set(1)
}

// processorTime returns how long this process has run, or 0 if the system does not tell.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// relayed counts a piece of a stream, or a packet.
func (p *processors) relayed(bytes int) { p.did(1 + bytes/workBytes) }

// did counts pieces of work.
func (p *processors) did(pieces int) {
	if p.set == nil {
		return
	}
	if after := p.work.Add(int64(pieces)); after/workSpan == (after-int64(pieces))/workSpan {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	took := now.Sub(p.lookedAt)
	if took < lookInterval {
		return
	}
	used := p.used()
	share := float64(used-p.before) / float64(took)
	p.lookedAt, p.before = now, used
	switch {
	case !p.busy && share > fullShare:
		p.busy = true
		p.set(p.all)
	case p.busy && share < oneShare:
		p.busy = false
		p.set(1)
	}
}
