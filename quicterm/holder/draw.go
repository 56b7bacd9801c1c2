//go:build linux || darwin

package holder

import (
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/quicterm/wire"
)

func (e *emulator) loop(end <-chan struct{}) {
	defer e.later.Stop()
	for {
		select {
		case <-end:
			return
		case <-e.wake:
			e.drawAll()
		}
	}
}

func (e *emulator) drawAll() {
	e.h.gate.Lock()
	defer e.h.gate.Unlock()
	e.due = false
	if e.screen == nil {
		e.screen = e.newScreen()
	}
	for e.serveSnapshotsLocked(); !e.h.life.over && !e.ended; e.serveSnapshotsLocked() {
		if first := e.h.ring.First(); e.next < first { // by a shortage of memory
			e.next = first
		}
		frames := e.undrawnFramesLocked()
		if frames == nil {
			break
		}
		e.drawing = true
		e.h.gate.Unlock()
		next, ended, fault := e.draw(frames)
		memory := e.screen.Memory()
		e.h.gate.Lock()
		e.drawing, e.next, e.ended, e.memory = false, next, ended, memory
		if fault != nil {
			e.h.events.hearing.Forget()
			e.drawFailedLocked(next, fault)
		} else {
			e.h.events.heard = max(e.h.events.heard, next)
			e.h.events.drawnLocked(e.screen.Title(), e.screen.DirectoryURI())
			e.h.ports.lookLaterLocked()
			e.h.answerLocked(e.h.events.hearing.Answers())
		}
		if ended {
			e.h.events.tellEndLocked()
		}
		e.markLocked()
		e.commandLocked()
		e.h.keeper.Change()
		e.h.clients.drawn = e.next
		e.h.clients.release()
		if e.behind && !e.awaitsDrawingLocked() {
			e.h.gate.Changed()
		}
		e.yieldLocked()
	}
}

// undrawnFramesLocked returns slices of the ring with frames to draw, or nil if there are none.
func (e *emulator) undrawnFramesLocked() (frames [][]byte) {
	next := e.next
	for left := drawNow; left > 0; {
		var b []byte
		if b, next = e.h.ring.Slice(next, left); b == nil {
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
	heard, hearing := e.h.events.heard, &e.h.events.hearing
	hearing.Begin(time.Now(), next < heard)
	flush := func() {
		e.write(e.screen, e.output)
		e.output = e.output[:0]
	}
	for _, b := range frames {
		for len(b) > 0 {
			f, n, err := buffer.Parse(b)
			if err != nil || f.Type == wire.Exit {
				flush()
				return next, err == nil, err
			}
			if f.Seq == heard { // what is before it is drawn again
				flush()
				hearing.Begin(time.Now(), false)
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
func (e *emulator) drawFailedLocked(next uint64, fault error) {
	if e.apart {
		e.bad = append(e.bad, next)
		e.next = next + 1
		e.failedLocked(fault)
		return
	}
	e.apart = true // find the frame
	e.restart()
	e.next = e.h.ring.First()
}
