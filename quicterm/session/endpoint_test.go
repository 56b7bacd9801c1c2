package session

import (
	"testing"
	"time"

	"github.com/quicterm/quicterm/buffer"
)

// Whatever the network does, both logs arrive byte by byte, in order, once.
func TestChaos(t *testing.T) {
	worlds, steps := 150, 2000
	if testing.Short() {
		worlds = 20
	}
	for seed := range worlds {
		w := newWorld(t, uint64(seed))
		w.datagrams = seed%4 != 0
		w.skips = seed%3 == 0
		w.bulkCarriers = seed%5 < 2
		if seed%2 == 1 {
			w.takeSnapshots()
		}
		w.chaos(steps)
		if testing.Verbose() {
			t.Logf("%d: %v", seed, w)
		}
	}
}

func FuzzChaos(f *testing.F) {
	f.Add(uint64(1), uint16(300), true, false)
	f.Add(uint64(2), uint16(300), false, true)
	f.Fuzz(func(t *testing.T, seed uint64, steps uint16, datagrams, snapshots bool) {
		w := newWorld(t, seed)
		w.datagrams, w.bulkCarriers = datagrams, seed%5 < 2
		if w.skips = snapshots; snapshots {
			w.takeSnapshots()
		}
		w.chaos(int(steps % 3000))
	})
}

func TestKeyArrivesInHalfARoundTrip(t *testing.T) {
	w := newWorld(t, 1)
	w.connect()
	w.run(time.Second)
	start := w.now
	w.append(0, 1)
	for len(w.ends[1].got) == 0 {
		w.step(start.Add(time.Minute))
	}
	if d := w.now.Sub(start); d != w.delay {
		t.Errorf("arrived after %v, want %v", d, w.delay)
	}
}

// Types of log frames, which an Endpoint does not look at.
const (
	output buffer.Type = 1
	input  buffer.Type = 3
)
