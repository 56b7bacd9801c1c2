//go:build linux || darwin

package holder

import (
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// An emulator draws the output of a terminal on a screen, beside the way of the output:
//
//	readOutput --> ring --> driver, per carrier --> clients
//	                  \                         /
//	                   drawLoop --> screen --> snapshots
//
// It draws what is in the ring a little later, and much at once: the screen skips what scrolls by
// within that. If it falls far behind, reading the program's output waits for it, so that it draws all
// output. A fault of the screen costs the session nothing: a new screen is drawn from the ring.
const (
	// drawDelay is how much later than it is sent output is drawn, unless a client waits for the
	// screen: the echo of a key has left by then, and much of a flood has come.
	drawDelay = 250 * time.Millisecond

	// drawNow is how many bytes of frames are drawn at once, with the gate unlocked. That is some 20 times
	// the text of a scrollback, which is not skipped, and takes 25 ms if nothing is skipped: as
	// long a new client may wait.
	drawNow = 2 << 20

	// maxBehind is how many bytes of output may wait to be drawn, if that is less than half
	// of the ring.
	maxBehind = 8 << 20

	// maxRedrawn is how many faults have all of the ring drawn again, without the frame at which the
	// screen has failed. After further ones, drawing continues on an empty screen.
	maxRedrawn = 3
)

// A canvas is a [screen.Screen], or what a test has in its place.
type canvas interface {
	Write(b []byte) (int, error)
	Resize(cols, rows int)
	Memory() int
	Scrolled() uint64
	Lines() int
	Snapshot(screen.Snapshot) []byte
	ClearHistory()
}

// newCanvas returns the screen of a terminal of a size; one whose size is not known has the
// usual one.
func newCanvas(size wire.Size) canvas {
	if size.Cols == 0 || size.Rows == 0 {
		size.Cols, size.Rows = 80, 24
	}
	return screen.New(int(size.Cols), int(size.Rows), screen.Limits{})
}

// The gate guards an emulator, except that drawLoop alone uses the screen and its size while
// drawing is true.
type emulator struct {
	newCanvas func(wire.Size) canvas
	screen    canvas
	sizing    wire.Sizing
	drawn     wire.Size // its size, when all was drawn before; others than drawLoop may use it
	drawing   bool

	next   uint64 // the first frame that is not drawn
	ended  bool   // it is that of the program's end, behind which nothing is drawn
	memory int    // of the screen

	wake    chan struct{} // wakes drawLoop; buffers one
	later   *time.Timer   // does so
	due     bool          // later is set
	behind  bool          // output waits until more is drawn
	awaited []uint64      // frames before which goroutines wait for all to be drawn
	parked  bool          // drawing waits for clients that get a snapshot
	last    snapshot
	marks   []mark // oldest first

	faults int
	apart  bool     // frames are drawn one by one, so that a fault names one
	bad    []uint64 // frames that are not drawn

	output []byte // memory for draw
}

func newEmulator(size wire.Size) emulator {
	e := emulator{newCanvas: newCanvas, next: 1, sizing: wire.Sizing{Size: size}, drawn: size, wake: make(chan struct{}, 1)}
	e.later = time.AfterFunc(time.Hour, e.hurry)
	e.later.Stop()
	return e
}

// hurry makes drawLoop draw.
func (e *emulator) hurry() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// drawLaterLocked makes drawLoop draw what was appended, a little later.
func (h *Holder) drawLaterLocked() {
	e := &h.emulator
	switch {
	case !h.launch.PTY || e.ended:
	case h.undrawnLocked() >= min(drawNow, h.mostUndrawnLocked()/2):
		e.hurry()
	case !e.due:
		e.due = true
		e.later.Reset(drawDelay)
	}
}

// undrawnLocked returns how many bytes of frames wait to be drawn.
func (h *Holder) undrawnLocked() int {
	if !h.launch.PTY || h.emulator.ended {
		return 0
	}
	return h.ring.Size(h.emulator.next)
}

// mostUndrawnLocked returns how many bytes of frames may wait to be drawn.
func (h *Holder) mostUndrawnLocked() int { return min(maxBehind, h.clients.buffer/2) }

// awaitsDrawingLocked reports whether output waits for the emulator.
func (h *Holder) awaitsDrawingLocked() bool {
	switch n, most := h.undrawnLocked(), h.mostUndrawnLocked(); {
	case n > most:
		h.emulator.behind = true
	case n <= most/2:
		h.emulator.behind = false
	}
	return h.emulator.behind
}

// drawLoop draws the output until the session is over.
func (h *Holder) drawLoop() {
	defer h.emulator.later.Stop()
	for {
		select {
		case <-h.end:
			return
		case <-h.emulator.wake:
			h.draw()
		}
	}
}

// draw draws all output that there is.
func (h *Holder) draw() {
	h.gate.Lock()
	defer h.gate.Unlock()
	e := &h.emulator
	e.due = false
	if e.screen == nil {
		e.screen = e.newCanvas(e.sizing.Size)
	}
	for h.serveSnapshotsLocked(); !h.life.over && !e.ended; h.serveSnapshotsLocked() {
		if first := h.ring.First(); e.next < first { // by a shortage of memory
			e.next = first
		}
		frames := h.undrawnFramesLocked()
		if frames == nil {
			break
		}
		e.drawing = true
		h.gate.Unlock()
		next, ended, fault := e.draw(frames)
		memory := e.screen.Memory()
		h.gate.Lock()
		e.drawing, e.next, e.ended, e.memory, e.drawn = false, next, ended, memory, e.sizing.Size
		if fault != nil {
			h.drawFailedLocked(next, fault)
		}
		h.markLocked()
		h.keeper.change()
		h.clients.drawn = e.next
		h.clients.release()
		if e.behind && !h.awaitsDrawingLocked() {
			h.gate.Changed()
		}
		h.yieldLocked()
	}
}

// undrawnFramesLocked returns slices of the ring with frames to draw, or nil if there are none.
func (h *Holder) undrawnFramesLocked() (frames [][]byte) {
	next := h.emulator.next
	for left := drawNow; left > 0; {
		var b []byte
		if b, next = h.ring.Slice(next, left); b == nil {
			break
		}
		frames = append(frames, b)
		left -= len(b)
	}
	return frames
}

// draw draws frames up to the program's end, and output of several frames at once. It returns the first
// that is not drawn, and why the screen has failed: if frames are drawn apart, at that one.
func (e *emulator) draw(frames [][]byte) (next uint64, ended bool, fault error) {
	next = e.next
	defer func() {
		if r := recover(); r != nil {
			fault = fmt.Errorf("%v\n%s", r, debug.Stack())
		}
	}()
	size := 0
	for _, b := range frames {
		size += len(b)
	}
	if e.output = e.output[:0]; size < drawNow/8 && cap(e.output) > drawNow/8 {
		e.output = nil // the flood is over: keep no memory for it
	}
	e.output = slices.Grow(e.output, size)
	flush := func() {
		e.screen.Write(e.output)
		e.output = e.output[:0]
	}
	for _, b := range frames {
		for len(b) > 0 {
			f, n, err := buffer.Parse(b)
			if err != nil || f.Type == wire.Exit {
				flush()
				return next, err == nil, err
			}
			switch {
			case slices.Contains(e.bad, f.Seq):
			case f.Type == wire.Stdout:
				e.output = append(e.output, f.Payload...)
			case f.Type == wire.Resize:
				flush()
				e.resize(f.Payload)
			}
			if e.apart {
				flush()
			}
			b, next = b[n:], f.Seq+1
		}
	}
	flush()
	return next, false, nil
}

func (e *emulator) resize(payload []byte) {
	if sizing, _, err := wire.ParseSizing(payload); err == nil && sizing.Cols > 0 && sizing.Rows > 0 {
		e.sizing = sizing
		e.screen.Resize(int(sizing.Cols), int(sizing.Rows))
	}
}

// drawFailedLocked begins a new screen after a fault of drawing. next is the first frame that was not drawn.
func (h *Holder) drawFailedLocked(next uint64, fault error) {
	e := &h.emulator
	if e.apart {
		e.bad = append(e.bad, next)
		e.next = next + 1
		h.emulatorFailedLocked(fault)
		return
	}
	e.apart = true // find the frame
	e.restart()
	e.next = h.ring.First()
}

// emulatorFailedLocked begins a new screen after a fault.
func (h *Holder) emulatorFailedLocked(fault error) {
	e := &h.emulator
	e.restart()
	e.faults++
	if e.faults <= maxRedrawn {
		h.log.Error("the screen of the session has failed and is drawn again", "error", fault)
		e.next = h.ring.First()
	} else {
		e.bad = nil
	}
}

func (e *emulator) restart() {
	e.screen, e.marks, e.ended = e.newCanvas(e.sizing.Size), nil, false
}
