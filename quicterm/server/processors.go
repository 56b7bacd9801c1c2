package server

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// A key passes several goroutines, one after the other. With more than one processor each hand-over wakes a
// thread that finds nothing to do, which costs more than the key itself. So a daemon that relays little uses
// one processor, and one that relays much all of them.
//
// How much that is it sees by how long workSpan pieces of work took, each a packet, or workBytes of a stream. In
// busyTime they keep about half a processor busy. It uses one again when they took twice as long.
const (
	workSpan   = 256
	workBytes  = 4 << 10
	acceptWork = 4 // pieces that a connection's beginning is as much as
	busyTime   = 250 * time.Millisecond
)

// processors sets how many processors this process uses.
type processors struct {
	set  func(int) int // runtime.GOMAXPROCS, or nil to change nothing
	all  int
	work atomic.Int64 // pieces

	mu      sync.Mutex
	busy    bool      // all are used
	endedAt time.Time // the last span of work
}

// SaveProcessors makes this process use one processor while the server relays little. It is called before
// Serve.
func (s *Server) SaveProcessors() { s.processors.begin(runtime.GOMAXPROCS) }

func (p *processors) begin(set func(int) int) {
	p.set, p.all, p.endedAt = set, set(0), time.Now()
	set(1)
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
	took := now.Sub(p.endedAt)
	p.endedAt = now
	switch {
	case !p.busy && took < busyTime:
		p.busy = true
		p.set(p.all)
	case p.busy && took > 2*busyTime:
		p.busy = false
		p.set(1)
	}
}
