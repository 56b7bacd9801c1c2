//go:build linux || darwin

package holder

import (
	"context"
	"slices"

	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A snapshot is the last one that was made while drawing waits. Clients that ask meanwhile get the same.
type snapshot struct {
	next  uint64
	lines int
	data  []byte
}

// snapshotLocked is [session.Config.Snapshot] of an attachment.
func (e *emulator) snapshotLocked(a *attachment) (next uint64, data []byte, ready bool) {
	a.wantsSnapshot = true
	if a.resting || e.drawing || e.screen == nil || e.next < a.endpoint.First() {
		e.hurry()
		return 0, nil, false
	}
	if owner := e.h.clients.numbered(e.sizing.Owner); owner != nil {
		e.sizing.Client = owner.client // it had not come when that was logged
	}
	data, fault := e.takeSnapshot(a.lines)
	if fault != nil {
		e.failedLocked(fault)
		e.hurry()
		return 0, nil, false
	}
	a.wantsSnapshot, a.lines = false, a.usualLines
	if e.parked {
		e.h.gate.Changed()
	} else {
		e.last = snapshot{}
	}
	return e.next, data, true
}

// takeSnapshot returns a snapshot with lines of the scrollback, at most, or nil if the screen needs more
// than a snapshot may have: then the client is told of a gap.
func (e *emulator) takeSnapshot(lines int) (data []byte, fault error) {
	s := &e.last
	if s.next == e.next && s.lines == lines {
		return s.data, nil
	}
	var b []byte
	fault = recovered(func() {
		b = e.snapshot(e.screen, screen.Snapshot{Lines: lines, Bytes: session.MaxSnapshot - wire.MaxSizing})
	})
	if fault != nil {
		return nil, fault
	}
	*s = snapshot{next: e.next, lines: lines}
	if b != nil {
		s.data = wire.Snapshot{Sizing: e.sizing, Screen: b}.Append(nil)
	}
	return s.data, nil
}

// serveSnapshotsLocked wakes the clients that wait for a snapshot, and blocks until each has it.
func (e *emulator) serveSnapshotsLocked() {
	var served []*attachment
	for _, a := range e.h.clients.all {
		if a.wantsSnapshot && !a.resting && a.role.receives() && a.endpoint.First() <= e.next {
			served = append(served, a)
			a.endpoint.SnapshotReady()
			a.driver.Wake()
		}
	}
	if served == nil {
		return
	}
	e.parked = true
	ctx, cancel := context.WithTimeout(context.Background(), parkTime)
	defer cancel()
	e.h.gate.Wait(ctx, func() bool {
		return e.h.life.over || !slices.ContainsFunc(served, func(a *attachment) bool { return a.wantsSnapshot })
	})
	for _, a := range served {
		a.wantsSnapshot = false // it may be gone; if not, it asks again
	}
	e.parked, e.last = false, snapshot{}
}

// awaitDrawnLocked blocks until all output that there is now is drawn, but not for long. It
// reports whether the caller may use the screen now.
func (e *emulator) awaitDrawnLocked() bool {
	next := e.h.ring.Next()
	ctx, cancel := context.WithTimeout(context.Background(), drawnTime)
	defer cancel()
	e.hurry()
	e.awaited = append(e.awaited, next)
	defer func() {
		i := slices.Index(e.awaited, next)
		e.awaited = slices.Delete(e.awaited, i, i+1)
		e.h.gate.Changed()
	}()
	drawn := func() bool { return !e.drawing && e.screen != nil && (e.ended || e.next >= next) }
	e.h.gate.Wait(ctx, func() bool { return e.h.life.over || drawn() })
	return drawn()
}

// yieldLocked lets those go on that wait until more is drawn, if that is drawn now.
func (e *emulator) yieldLocked() {
	if len(e.awaited) == 0 {
		return
	}
	e.h.gate.Changed()
	ctx, cancel := context.WithTimeout(context.Background(), parkTime)
	defer cancel()
	e.h.gate.Wait(ctx, func() bool {
		return e.h.life.over || !slices.ContainsFunc(e.awaited, func(next uint64) bool { return e.ended || next <= e.next })
	})
}

// A mark tells how many rows had scrolled off the screen before a frame.
type mark struct{ next, scrolled uint64 }

// markLocked moves the mark of what was seen to the last place that has been drawn and that a writer has consumed.
func (e *emulator) markLocked() {
	now := mark{e.next, e.screen.Scrolled()}
	switch seen := e.h.clients.seen; {
	case e.ahead.next == 0, seen >= now.next:
		e.seen, e.ahead = now, now
	case seen >= e.ahead.next:
		e.seen, e.ahead = e.ahead, now
	}
}

// A commandEnd is the end of the last command of a shell that is known.
type commandEnd struct {
	ended *wire.Ended // nil if there is none
	next  uint64      // the frame before which it is
	count int         // how many the screen knew of then
}

// commandLocked records the end of a command that was drawn.
func (e *emulator) commandLocked() {
	ended := e.screen.Ended()
	if ended.Count == e.command.count {
		return
	}
	e.command.count = ended.Count
	if ended.Count > 0 { // else the screen is a new one
		e.command.next, e.command.ended = e.next, &wire.Ended{
			Command: ended.Command, Status: int64(ended.Status), At: e.h.reading.last.Unix(),
		}
	}
}

// hiddenLinesLocked returns about how many lines no client has seen that a snapshot leaves out.
func (e *emulator) hiddenLinesLocked(lines int) uint64 {
	if e.drawing || e.screen == nil || e.ahead.next == 0 {
		return 0
	}
	e.markLocked()
	seen := e.seen.scrolled
	if e.h.clients.seen > 1 {
		seen += uint64(e.sizing.Rows) // the screen itself was seen
	}
	left := e.screen.Scrolled() - min(e.screen.Scrolled(), uint64(min(lines, e.screen.Lines())))
	return e.h.clients.hidden + left - min(left, seen)
}
