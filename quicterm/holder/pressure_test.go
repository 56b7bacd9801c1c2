//go:build linux || darwin

package holder

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/quicterm/holder/fit"
	"github.com/quicterm/quicterm/quicterm/machine/memory"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A machine has memory, of which a part is available.
type machine struct {
	percent atomic.Uint64
	looks   atomic.Int64
}

func (m *machine) read() (memory.State, error) {
	m.looks.Add(1)
	return memory.State{Total: 100 << 30, Available: m.percent.Load() << 30}, nil
}

// pass lets time pass, and then all that waits for this time happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// ringSize returns how much memory the output takes.
func (w *world) ringSize() (n int) {
	w.locked(func(h *Holder) { n = h.ring.Memory() })
	return n
}

// When memory is scarce, the output of a terminal without a client does not grow. When it
// is critical, the oldest is dropped, and the next client is told how much. When there is
// plenty again, the ring has its capacity again.
func TestTerminalUnderPressure(t *testing.T) {
	m := new(machine)
	m.percent.Store(50)
	onMachine(t, wire.Launch{PTY: true, Buffer: 64 << 20}, m.read, func(w *world) {
		all := lines(8 << 20)
		w.print(all[:4<<20])
		held := w.ringSize()
		if held < 4<<20 {
			t.Fatalf("the ring takes %d bytes of 4 MiB of output", held)
		}
		m.percent.Store(fit.Scarce - 1)
		pass(fit.Interval)
		w.print(all[4<<20 : 6<<20])
		if n := w.ringSize(); n > held || n < held/2 {
			t.Errorf("while memory is scarce the ring takes %d bytes, want at most the %d of before", n, held)
		}
		m.percent.Store(fit.Critical - 1)
		pass(fit.Interval + 10*fit.CriticalInterval)
		if n := w.ringSize(); n > fit.SmallRing || n < fit.SmallRing/2 {
			t.Errorf("while memory is critical the ring takes %d bytes, want about %d", n, fit.SmallRing)
		}
		m.percent.Store(fit.Plenty)
		pass(fit.Interval)
		w.print(all[6<<20:])
		if n := w.ringSize(); n < 2<<20 {
			t.Errorf("with plenty of memory the ring takes %d bytes, and 2 MiB were printed", n)
		}
		c, conn := w.join("a@x")
		defer conn.Close()
		c.resume()
		c.awaitOutput(all[6<<20:])
		if got := c.output(); !strings.HasSuffix(all, got) || len(got) < 2<<20 {
			t.Errorf("%d bytes came, which are not the end of what was printed", len(got))
		}
	})
}

// In a control group with little memory too, a ring that has shrunk grows again.
func TestSmallGroupUnderPressure(t *testing.T) {
	var available atomic.Uint64
	read := func() (memory.State, error) { return memory.State{Total: 24 << 20, Available: available.Load()}, nil }
	available.Store(fit.Least - 1)
	onMachine(t, wire.Launch{PTY: true, Buffer: 64 << 20}, read, func(w *world) {
		w.print(lines(4 << 20))
		pass(10 * fit.CriticalInterval)
		if n := w.ringSize(); n > fit.SmallRing {
			t.Errorf("while memory is critical the ring takes %d bytes, want at most %d", n, fit.SmallRing)
		}
		available.Store(18 << 20)
		pass(fit.Interval)
		w.print(lines(3 << 20))
		if n := w.ringSize(); n < 3<<20 {
			t.Errorf("with plenty of memory the ring takes %d bytes, and 3 MiB were printed", n)
		}
	})
}

// A command's output is never dropped: the program waits sooner.
func TestPipeUnderPressure(t *testing.T) {
	m := new(machine)
	onMachine(t, wire.Launch{Buffer: 64 << 20, PipeTTL: 10 * time.Hour}, m.read, func(w *world) {
		all := lines(6 << 20)
		m.percent.Store(50)
		w.print(all[:2<<20])
		m.percent.Store(0)
		pass(fit.Interval)
		done := w.printing(all[2<<20:])
		pass(time.Hour)
		if n := w.ringSize(); done() || n > fit.CheckGrowth {
			t.Errorf("the ring takes %d bytes while no memory is available; the program has printed all: %v", n, done())
		}
		c, conn := w.join("a@x")
		defer conn.Close()
		c.resume()
		c.awaitOutput(all)
		if frames, _ := c.lost(); frames > 0 || c.output() != all {
			t.Errorf("%d bytes, %d frames lost; the program has printed %d bytes", len(c.output()), frames, len(all))
		}
		done = w.printing(all)
		c.awaitOutput(all + all)
		m.percent.Store(fit.Plenty)
		pass(fit.Interval)
		if !done() {
			t.Error("the program waits")
		}
	})
}

// A client that is connected gets all output, however little memory there is.
func TestClientUnderPressure(t *testing.T) {
	m := new(machine)
	onMachine(t, wire.Launch{PTY: true, Buffer: 64 << 20}, m.read, func(w *world) {
		c, conn := w.join("a@x")
		defer conn.Close()
		c.resume()
		all := lines(4 << 20)
		w.print(all)
		c.awaitOutput(all)
		if m.looks.Load() == 0 {
			t.Error("the holder has not looked at the memory")
		}
		if frames, _ := c.lost(); frames > 0 || c.output() != all {
			t.Errorf("%d bytes, %d frames lost; the program has printed %d bytes", len(c.output()), frames, len(all))
		}
	})
}

// A holder with little output never looks at the memory of its machine, and one with more
// once a minute.
func TestIdleHolderDoesNotLook(t *testing.T) {
	m := new(machine)
	m.percent.Store(50)
	onMachine(t, wire.Launch{PTY: true, Buffer: 64 << 20}, m.read, func(w *world) {
		w.print(lines(fit.SmallRing / 2))
		pass(24 * time.Hour)
		if n := m.looks.Load(); n != 0 {
			t.Errorf("%d looks at the memory", n)
		}
		w.print(lines(2 * fit.SmallRing))
		pass(time.Hour)
		if n := m.looks.Load(); n < 50 || n > 70 {
			t.Errorf("%d looks in an hour, want about 60", n)
		}
	})
}

// A holder that cannot learn of the memory of its machine looks no more often than others.
func TestUnknownMemory(t *testing.T) {
	m := new(machine)
	read := func() (memory.State, error) {
		m.looks.Add(1)
		return memory.State{}, errors.New("no descriptors")
	}
	onMachine(t, wire.Launch{PTY: true, Buffer: 64 << 20}, read, func(w *world) {
		w.print(lines(2 * fit.SmallRing))
		before := m.looks.Load()
		for range 20 {
			w.print("more\n")
		}
		if n := m.looks.Load(); before == 0 || n != before {
			t.Errorf("%d looks at the memory, and %d while the output hardly grew", before, n-before)
		}
		m.looks.Store(0)
		time.Sleep(time.Hour)
		if n := m.looks.Load(); n < 50 || n > 70 {
			t.Errorf("%d looks in an hour, want about 60", n)
		}
	})
}
