//go:build linux || darwin

package holder

import (
	"runtime/debug"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/quicterm/machine/memory"
)

// When the machine is short of memory, the kernel ends processes, and their sessions with
// them. Before that a holder gives up what is worth less:
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

	// leastMemory: below this many bytes memory is critical, whatever the percentage; below twice as
	// much scarce; from four times as much plenty, or from half of all memory if that is less, as in
	// a control group with a small limit. While the holder looks, the ring may grow by checkGrowth,
	// and its garbage by a third of the ring.
	leastMemory = 2 * checkGrowth

	// smallRing is the size of a ring that is left alone, in bytes: some screens full.
	smallRing = 1 << 20

	// checkGrowth is how many bytes a ring grows between two looks at the memory of the
	// machine. A look costs less than reading that much output.
	checkGrowth = 4 << 20

	// checkInterval is the time between two looks while a ring is not small and does not
	// grow. A holder with a small ring does not wake up for this.
	checkInterval = time.Minute

	// criticalInterval is the same while memory is critical.
	criticalInterval = time.Second
)

// A pressure is what a holder knows of the memory of its machine.
type pressure struct {
	read  func() (memory.State, error) // nil if the holder takes no care of it
	grown chan struct{}                // wakes memoryLoop; buffers one
	next  int                          // size of the ring at which it is woken
}

// grownLocked wakes memoryLoop when the ring has grown enough for another look.
func (h *Holder) grownLocked() {
	if h.pressure.read == nil || h.ring.Memory() < h.pressure.next {
		return
	}
	select {
	case h.pressure.grown <- struct{}{}:
	default:
	}
}

// memoryLoop keeps the capacity of the ring to what the machine can bear.
func (h *Holder) memoryLoop() {
	timer := time.NewTimer(0)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case <-h.end:
			return
		case <-h.pressure.grown:
		case <-timer.C:
		}
		state, err := h.pressure.read()
		if err != nil {
			h.log.Warn("memory is not known", "error", err)
		}
		h.gate.Lock()
		before := h.ring.Memory()
		again := checkInterval
		if err == nil {
			again = h.fitLocked(state)
		}
		freed := before - h.ring.Memory()
		h.pressure.next = max(h.ring.Memory()+checkGrowth, smallRing)
		h.gate.Unlock()
		if freed > 0 {
			h.log.Info("output dropped, because the machine is short of memory", "bytes", freed)
			debug.FreeOSMemory()
		}
		if timer.Stop(); again > 0 {
			timer.Reset(again)
		}
	}
}

// fitLocked changes the capacity of the ring to what fits the memory of the machine, and
// returns when to look again, or 0 for when the ring has grown.
func (h *Holder) fitLocked(state memory.State) (again time.Duration) {
	held, full := h.ring.Memory(), max(h.launch.Buffer, buffer.MinCapacity)
	percent := state.Available * 100 / max(state.Total, 1)
	percent = min(percent, state.Available*criticalMemory/leastMemory)
	switch {
	case percent >= plentyMemory, percent >= scarceMemory && state.Available > state.Total/2:
		h.ring.SetCapacity(full)
	case percent < criticalMemory && h.launch.PTY:
		keep := max(held/2, smallRing, h.clients.outstanding(time.Now()), h.emulator.undrawnLocked()+2*buffer.MaxSegment)
		h.ring.SetCapacity(min(keep, full, max(held, smallRing)))
	case percent < scarceMemory:
		h.ring.SetCapacity(min(full, max(held, smallRing)))
	}
	if h.clients.buffer = full; h.ring.Capacity() < full {
		// Less output is outstanding than the ring has, also while it still has the large
		// segments of before.
		h.clients.buffer = h.ring.Capacity() / 2
	}
	h.clients.appended(time.Now()) // the oldest frames may be gone
	h.gate.Changed()               // there may be room
	switch held = h.ring.Memory(); {
	case held <= smallRing && h.ring.Capacity() == full:
		return 0
	case held > smallRing && percent < criticalMemory && h.launch.PTY:
		return criticalInterval
	}
	return checkInterval
}

// outstanding returns the size of what a writer is about to get that is connected and does
// not owe an ack for long: the most of any.
func (s *clients) outstanding(now time.Time) (most int) {
	for w := range s.writers() {
		if n := w.endpoint.Unacked(); w.connected() && n > 0 && now.Sub(w.endpoint.UnackedSince()) <= stallLimit {
			most = max(most, n+2*buffer.MaxSegment)
		}
	}
	return most
}
