//go:build linux || darwin

package holder

import (
	"runtime/debug"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/quicterm/machine/memory"
)

// When the machine is short of memory, the kernel ends processes, and their sessions with
// them. Before that, a holder gives up output:
//
//   - when memory is scarce, the ring does not grow: new output takes the place of the
//     oldest, as in any full ring, and the program on a pipe waits;
//   - when it is critical, the ring of a terminal shrinks by half each criticalInterval. It
//     gives up the oldest output first: history that clients have had, then output that
//     none has had. A client is told how much, as of a full ring. What a connected client is
//     about to get stays, and all of a pipe's output.
//
// When there is plenty again, the ring has its full capacity.
const (
	// These are parts of all memory that are available, in percent.
	scarceMemory   = 10
	criticalMemory = 5
	plentyMemory   = 20

	// leastMemory: below this many bytes memory is critical, whatever the percentage; below twice as much scarce;
	// from four times as much plenty, or from half of all memory if that is less, as in a control group with a small
	// limit. While the holder looks, the ring may grow by checkGrowth, and its garbage by a third of the ring.
	leastMemory = 2 * checkGrowth

	// smallRing is the size of a ring that is left alone, in bytes: some screens full.
	smallRing = 1 << 20

	// checkGrowth is how many bytes a ring grows between two looks at the memory of the
	// machine. A look costs less than reading that much output.
	checkGrowth = 4 << 20
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
	return pressure{h: h, full: full, grown: make(chan struct{}, 1), next: smallRing}
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
		again := sweepInterval
		if err == nil {
			again = p.fitLocked(state)
		}
		freed := before - p.h.ring.Memory()
		p.next = max(p.h.ring.Memory()+checkGrowth, smallRing)
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

// fitLocked changes the capacity of the ring to what fits the memory of the machine, and
// returns when to look again, or 0 for when the ring has grown.
func (p *pressure) fitLocked(state memory.State) (again time.Duration) {
	held, full := p.h.ring.Memory(), p.full
	percent := state.Available * 100 / max(state.Total, 1)
	percent = min(percent, state.Available*criticalMemory/leastMemory)
	switch {
	case percent >= plentyMemory, percent >= scarceMemory && state.Available > state.Total/2:
		p.h.ring.SetCapacity(full)
	case percent < criticalMemory && p.h.launch.PTY:
		keep := max(held/2, smallRing, p.h.clients.outstanding(time.Now()), p.h.emulator.undrawnLocked()+2*buffer.MaxSegment)
		p.h.ring.SetCapacity(min(keep, full, max(held, smallRing)))
	case percent < scarceMemory:
		p.h.ring.SetCapacity(min(full, max(held, smallRing)))
	}
	if p.h.clients.buffer = full; p.h.ring.Capacity() < full {
		// Less output is outstanding than the ring has, also while it still has the large segments of before.
		p.h.clients.buffer = p.h.ring.Capacity() / 2
	}
	p.h.clients.appended(time.Now()) // the oldest frames may be gone
	p.h.gate.Changed()               // there may be room
	switch held = p.h.ring.Memory(); {
	case held <= smallRing && p.h.ring.Capacity() == full:
		return 0
	case held > smallRing && percent < criticalMemory && p.h.launch.PTY:
		return criticalInterval
	}
	return sweepInterval
}
