//go:build linux || darwin

package holder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/quicterm/quicterm/quicterm/holder/persist"
	"github.com/quicterm/quicterm/quicterm/screen"
)

// What is kept on disk goes beside the way of the output, as drawing does:
//
//	ring --> drawLoop --> (screen, output) --> keepLoop --> package persist
//
// drawLoop never waits for the disk: keepLoop asks for a screen when it can write one. A disk that is
// slow, full or hung costs the session nothing but its record.
const (
	// keepQuiet is how long a terminal must be silent before its screen is kept: a burst of output is
	// one screen. A log is written that often, except in a flood.
	keepQuiet = time.Second

	// keepMost is how old the kept screen of a busy terminal may be.
	keepMost = 10 * time.Second

	// keepRetry is the time before a disk that has failed is tried again.
	keepRetry = 30 * time.Second
)

// keepChangedLocked makes keepLoop write the record, unless that is of a lost session, which stays as it is.
func (h *Holder) keepChangedLocked() {
	if !h.life.lost {
		h.keeper.change()
	}
}

// keepScreenLocked gives keepLoop the screen if it waits for that. It runs in drawLoop.
func (h *Holder) keepScreenLocked() {
	e, k := &h.emulator, h.keeper
	if !k.wants() {
		return
	}
	s := kept{state: persist.State{Facts: h.factsLocked()}}
	s.state.Facts.Cols, s.state.Facts.Rows = e.sizing.Cols, e.sizing.Rows
	e.drawing = true
	h.gate.Unlock()
	var fault error
	s.state.Screen, fault = e.keep(k.screenSize())
	k.mu.Lock()
	k.wanted = false
	s.cleared, k.cleared = k.cleared, false
	k.mu.Unlock()
	s.events, s.skipped = k.take()
	h.gate.Lock()
	e.drawing = false
	h.gate.Changed()
	if fault != nil {
		h.emulatorFailedLocked(fault)
	}
	k.screens <- s // it has room: there is one for each time that a screen is wanted
}

// keep returns the screen in at most size bytes, or nil if it takes more.
func (e *emulator) keep(size int) (b []byte, fault error) {
	defer func() {
		if r := recover(); r != nil {
			fault = fmt.Errorf("%v", r)
		}
	}()
	return e.screen.Snapshot(screen.Snapshot{Lines: 1 << 20, Bytes: size}), nil
}

// A placed is a Program that knows its working directory.
type placed interface{ Directory() string }

// factsLocked returns what is known of the session now.
func (h *Holder) factsLocked() persist.Facts {
	dir := h.launch.Dir
	if p, ok := h.program.(placed); ok && !h.life.exited {
		if d := p.Directory(); d != "" {
			dir = d
		}
	}
	return persist.Facts{
		Name: h.launch.Name, Scope: h.launch.Scope, Command: h.launch.Command, Argv: h.launch.Argv, Dir: dir,
		Created: h.created.Unix(), Seen: time.Now().Unix(), Boot: h.boot[:],
		Exited: h.life.exited && !h.life.stopping, Status: h.life.exit.Status, Reason: h.life.exit.Reason,
	}
}

// keepLoop writes the record until the session is over.
func (h *Holder) keepLoop() {
	k := h.keeper
	defer close(k.done)
	retry := time.NewTimer(time.Hour)
	defer retry.Stop()
	for {
		var flushed chan struct{}
		select {
		case <-h.end:
			return
		case flushed = <-k.flush:
		case <-retry.C:
		case <-k.changed:
			if flushed = h.awaitQuietScreen(); h.isOver() {
				return
			}
		}
		err := h.keep()
		if err != nil && !k.failed {
			k.log.Error("the session is not kept on disk, and continues", "error", err)
		} else if err == nil && k.failed {
			k.log.Info("the session is kept on disk again")
		}
		if k.failed = err != nil; k.failed {
			retry.Reset(keepRetry)
		}
		if flushed != nil {
			close(flushed)
		}
		if k.failed && flushed == nil { // changes wait for the retry
			select {
			case <-h.end:
				return
			case <-retry.C:
				k.change()
			case flushed = <-k.flush:
				close(flushed)
			}
		}
	}
}

func (h *Holder) isOver() bool {
	select {
	case <-h.end:
		return true
	default:
		return false
	}
}

// awaitQuietScreen blocks until the terminal was silent for keepQuiet, at most for keepMost, or until
// the record must be written at once. Then it returns the channel to be closed when that is done.
func (h *Holder) awaitQuietScreen() (flushed chan struct{}) {
	k := h.keeper
	most := time.NewTimer(keepMost)
	defer most.Stop()
	quiet := time.NewTimer(keepQuiet)
	defer quiet.Stop()
	for {
		select {
		case <-h.end:
			return nil
		case flushed = <-k.flush:
			return flushed
		case <-quiet.C:
			return nil
		case <-most.C:
			return nil
		case <-k.changed:
			if !k.config.Log || k.flooded() {
				quiet.Reset(keepQuiet)
			}
		}
	}
}

// keep writes what is not kept yet.
func (h *Holder) keep() error {
	k := h.keeper
	h.gate.Lock()
	lost := h.life.lost
	h.gate.Unlock()
	if lost {
		return nil
	}
	if k.record != nil && k.record.Removed() { // it is made anew
		k.record.Close()
		k.record = nil
	}
	if err := k.open(&h.launch); err != nil {
		return err
	}
	k.mu.Lock()
	anew := !k.config.Log || !k.record.Continues() || k.skipped || k.cleared
	k.mu.Unlock()
	if !anew {
		events, skipped := k.take()
		if !skipped {
			h.gate.Lock()
			facts := h.factsLocked()
			facts.Cols, facts.Rows = h.emulator.drawn.Cols, h.emulator.drawn.Rows
			h.gate.Unlock()
			size, err := k.record.Append(events, &facts, k.config.Sync)
			if err != nil || size < k.config.Bytes*3/8 {
				return err
			}
		}
		anew = skipped
	}
	k.mu.Lock()
	k.wanted = true
	k.mu.Unlock()
	h.emulator.hurry()
	var s kept
	select {
	case <-h.end:
		return nil
	case s = <-k.screens:
	}
	err := k.write(&s, anew || s.skipped || s.cleared)
	if err == nil {
		return nil
	}
	if s.cleared {
		clearErr := k.record.Clear()
		s.cleared = clearErr != nil
		err = errors.Join(err, clearErr)
	}
	k.mu.Lock()
	k.skipped, k.cleared = true, k.cleared || s.cleared // the next record is a whole screen
	k.mu.Unlock()
	if errors.Is(err, fs.ErrNotExist) { // its directory was removed, and the lock has another name
		k.record.Close()
		k.record = nil
	}
	return err
}

// keepNow writes the record. It blocks until that is done or ctx ends.
func (h *Holder) keepNow(ctx context.Context) {
	if h.keeper == nil {
		return
	}
	flushed := make(chan struct{})
	select {
	case h.keeper.flush <- flushed:
	case <-h.end:
		return
	case <-ctx.Done():
		return
	}
	select {
	case <-flushed:
	case <-h.end:
	case <-ctx.Done():
	}
}
