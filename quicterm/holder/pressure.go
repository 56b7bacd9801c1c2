//go:build linux || darwin

package holder

import (
	"runtime/debug"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/quicterm/holder/fit"
	"github.com/quicterm/quicterm/quicterm/machine/memory"
)

// A pressure fits a session's ring to the memory of its machine. The holder's gate guards next and the ring.
type pressure struct {
	h    *Holder
	full int // capacity of the ring while memory is plenty

	read  func() (memory.State, error) // nil if nothing is done
	grown chan struct{}                // wakes loop; buffers one
	next  int                          // size of the ring at which it is woken
}

func newPressure(h *Holder) pressure {
	full := max(h.launch.Buffer, buffer.MinCapacity)
	return pressure{h: h, full: full, grown: make(chan struct{}, 1), next: fit.SmallRing}
}

// FitMemory makes the ring fit the memory of the machine, as read tells it. It must be called before Run.
func (h *Holder) FitMemory(read func() (memory.State, error)) { h.pressure.read = read }

func (p *pressure) grownLocked() {
	if p.read != nil && p.h.ring.Memory() >= p.next {
		wake(p.grown)
	}
}

func (p *pressure) loop(end <-chan struct{}) {
	var due <-chan time.Time
	for {
		select {
		case <-end:
			return
		case <-p.grown:
		case <-due:
		}
		state, err := p.read()
		if err != nil {
			p.h.log.Warn("memory is not known", "error", err)
		}
		p.h.gate.Lock()
		before := p.h.ring.Memory()
		again := fit.Interval
		if err == nil {
			again = p.fitLocked(state)
		}
		freed := before - p.h.ring.Memory()
		p.next = max(p.h.ring.Memory()+fit.CheckGrowth, fit.SmallRing)
		p.h.gate.Unlock()
		if freed > 0 {
			p.h.log.Info("output dropped, because the machine is short of memory", "bytes", freed)
			debug.FreeOSMemory()
		}
		if due = nil; again > 0 {
			due = time.After(again)
		}
	}
}

// fitLocked fits the ring to the memory of the machine, and returns when to look again, or 0 for when the ring has grown.
func (p *pressure) fitLocked(state memory.State) (again time.Duration) {
	keep := max(p.h.clients.outstanding(time.Now()), p.h.emulator.undrawnLocked()+2*buffer.MaxSegment)
	size := fit.Ring{Ring: p.h.ring, Full: p.full, Keep: keep, Gives: p.h.launch.PTY}
	again = size.Fit(state)
	if p.h.clients.buffer = p.full; p.h.ring.Capacity() < p.full {
		// Less output is outstanding than the ring has, also while it still has the large segments of before.
		p.h.clients.buffer = p.h.ring.Capacity() / 2
	}
	p.h.clients.appended(time.Now()) // the oldest frames may be gone
	p.h.gate.Changed()               // there may be room
	return again
}
