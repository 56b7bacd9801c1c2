//go:build linux || darwin

package holder

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// An emulator draws the output of a terminal on a screen, beside the way of the output:
//
//	readOutput --> ring --> driver, per carrier --> clients
//	                  \                         /
//	                   loop --> screen --> snapshots
//
// It draws what is in the ring a little later, and much at once: the screen skips what scrolls by
// within that. If it falls far behind, reading the program's output waits for it, so that it draws all
// output. A fault of the screen costs the session nothing: a new screen is drawn from the ring.
const (
	// drawNow is how many bytes of frames are drawn at once, with the gate unlocked. That is some 20 times the text
	// of a scrollback, which is not skipped, and takes 25 ms if nothing is skipped: as long a new client may wait.
	drawNow = 2 << 20

	// maxBehind is how many bytes of output may wait to be drawn, if that is less than half of the ring.
	maxBehind = 8 << 20

	// maxRedrawn is how many faults have all of the ring drawn again, without the frame at which the
	// screen has failed. After further ones, drawing continues on an empty screen.
	maxRedrawn = 3
)

// newScreen returns the screen of a terminal of a size; one whose size is not known has the usual one.
func newScreen(size wire.Size) *screen.Screen {
	if size.Cols == 0 || size.Rows == 0 {
		size.Cols, size.Rows = 80, 24
	}
	return screen.New(int(size.Cols), int(size.Rows), screen.Limits{})
}

// The gate guards an emulator, except that loop alone uses the screen and its size while drawing is true.
type emulator struct {
	h *Holder

	screen  *screen.Screen
	sizing  wire.Sizing
	drawing bool

	// Tests make these fail.
	write    func(*screen.Screen, []byte) (int, error)
	snapshot func(*screen.Screen, screen.Snapshot) []byte

	next   uint64 // the first frame that is not drawn
	ended  bool   // it is that of the program's end, behind which nothing is drawn; or there is no terminal
	memory int    // of the screen

	wake    chan struct{} // wakes loop; buffers one
	later   *time.Timer   // does so
	due     bool          // later is set
	behind  bool          // output waits until more is drawn
	awaited []uint64      // frames before which goroutines wait for all to be drawn
	parked  bool          // drawing waits for clients that get a snapshot
	last    snapshot
	seen    mark // before which all was seen
	ahead   mark // which takes its place when that was seen
	command commandEnd

	faults int
	apart  bool     // frames are drawn one by one, so that a fault names one
	bad    []uint64 // frames that are not drawn

	output []byte // memory for draw
}

func newEmulator(h *Holder) emulator {
	e := emulator{
		h: h, sizing: wire.Sizing{Size: h.launch.Size}, next: 1, ended: !h.launch.PTY, wake: make(chan struct{}, 1),
		write: (*screen.Screen).Write, snapshot: (*screen.Screen).Snapshot,
	}
	e.later = time.AfterFunc(drawDelay, e.hurry)
	e.later.Stop()
	return e
}

// newScreen returns a screen whose output the session's events are heard in.
func (e *emulator) newScreen() *screen.Screen {
	s := newScreen(e.sizing.Size)
	s.Listen(&e.h.events.hearing)
	return s
}

func (e *emulator) hurry() { wake(e.wake) }

func (e *emulator) drawLaterLocked() {
	switch {
	case e.ended:
	case e.undrawnLocked() >= min(drawNow, e.mostUndrawnLocked()/2):
		e.hurry()
	case !e.due:
		e.due = true
		e.later.Reset(drawDelay)
	}
}

func (e *emulator) undrawnLocked() int {
	if e.ended {
		return 0
	}
	return e.h.ring.Size(e.next)
}

func (e *emulator) mostUndrawnLocked() int { return min(maxBehind, e.h.clients.buffer/2) }

func (e *emulator) awaitsDrawingLocked() bool {
	switch n, most := e.undrawnLocked(), e.mostUndrawnLocked(); {
	case n > most:
		e.behind = true
	case n <= most/2:
		e.behind = false
	}
	return e.behind
}

func (e *emulator) failedLocked(fault error) {
	e.restart()
	e.faults++
	if e.faults <= maxRedrawn {
		e.h.log.Error("the screen of the session has failed and is drawn again", "error", fault)
		e.next = e.h.ring.First()
	} else {
		e.bad = nil
	}
}

func (e *emulator) restart() {
	e.screen, e.ahead, e.ended = e.newScreen(), mark{}, false
}

// recovered calls a function of the screen, and returns its panic as an error.
func recovered(f func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v\n%s", r, debug.Stack())
		}
	}()
	f()
	return nil
}
