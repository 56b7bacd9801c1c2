//go:build linux || darwin

package holder

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/quicterm/quicterm/quicterm/holder/persist"
	"github.com/quicterm/quicterm/quicterm/machine/pam"
	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// lostTTL is how long a holder of a lost session waits for an answer without a client. The record stays.
const lostTTL = time.Minute

// takeTime bounds how long a record is awaited that another process reads.
const takeTime = time.Second

// A takenRecord is the record of a lost session, which no other process has.
type takenRecord struct {
	record   *persist.Record
	key      []byte
	contents *persist.Contents
}

// takeRecord takes the record of a launch that restores a session.
func takeRecord(launch *wire.Launch) (*takenRecord, error) {
	key, err := readKey(launch.Persist.Key)
	if err != nil {
		return nil, err
	}
	store, err := openStore(launch.Persist)
	if err != nil {
		return nil, err
	}
	record, err := takeSoon(store, launch.ID.String())
	if err != nil {
		store.Close()
		if errors.Is(err, fs.ErrNotExist) {
			err = errors.New("its record is gone")
		}
		return nil, err
	}
	c, err := record.Load(key)
	switch {
	case err != nil:
		err = fmt.Errorf("the record of session %q cannot be read: %w", launch.Name, err)
	case launch.Scope != "" && launch.Scope != c.Facts.Scope:
		err = fs.ErrPermission
	default:
		return &takenRecord{record, key, c}, nil
	}
	record.Close()
	store.Close()
	return nil, err
}

// takeSoon takes a record, also if another process has it for a moment.
func takeSoon(store *persist.Store, id string) (r *persist.Record, err error) {
	for end := time.Now().Add(takeTime); ; time.Sleep(takeTime / 50) {
		r, err = store.Take(id)
		if !errors.Is(err, persist.ErrBusy) || time.Now().After(end) {
			return r, err
		}
	}
}

// restore prepares the holder of a lost session, with its record as if the session had printed that.
func restore(launch *wire.Launch, taken *takenRecord, login *pam.Session, log *slog.Logger) (*Holder, error) {
	c := taken.contents
	launch.Size = wire.Size{Cols: c.Cols, Rows: c.Rows}
	launch.Scope = c.Facts.Scope
	if !launch.Persist.Replace && len(c.Facts.Argv) > 0 {
		launch.Argv, launch.Command = c.Facts.Argv, c.Facts.Command
	}
	if enterable(c.Facts.Dir) && filepath.IsAbs(c.Facts.Dir) {
		launch.Dir = c.Facts.Dir
	}
	launch.PTY = true
	recording, err := newRecording(launch, time.Now(), log)
	if err != nil {
		return nil, err
	}
	r := newRevival(launch, login)
	h := New(*launch, r, log)
	h.emulator.recording = recording
	h.created = time.Unix(c.Facts.Created, 0)
	h.life.claimed, h.life.lost = true, true
	h.life.lostExit = c.Facts.Exited && c.Facts.Reason == ""
	h.keeper.record, h.keeper.key = taken.record, taken.key
	h.show(c)
	r.started = h.revived
	r.ask(&c.Facts)
	return h, nil
}

// lostReason tells why a session was lost.
func lostReason(f *persist.Facts, id wire.SessionID) string {
	mark := CurrentBoot().Mark(id)
	if bytes.Equal(f.Boot, mark[:]) {
		return "its holder was killed"
	}
	return "the machine was rebooted"
}

// removesRecord reports whether a session that is over leaves no record. That of a lost one stays until
// its command is started again, it is killed, or a client knows how it ended.
func (h *Holder) removesRecord() bool {
	h.gate.Lock()
	defer h.gate.Unlock()
	return !h.life.lost || h.life.killed || h.life.lostExit && h.life.known
}

// show appends a record to the log of the output.
func (h *Holder) show(c *persist.Contents) {
	size := len(c.Screen)
	for _, e := range c.Events {
		size += len(e.Output)
	}
	output := func(b []byte) {
		for len(b) > 0 {
			n := min(len(b), maxRead)
			h.ring.Append(wire.Stdout, b[:n])
			b = b[n:]
		}
	}
	s := replayed(c)
	if size > h.ring.Capacity()/2 { // the ring has no room for all: the screen only
		cols, rows := s.Size()
		h.ring.Append(wire.Resize, wire.Sizing{Size: wire.Size{Cols: uint16(cols), Rows: uint16(rows)}}.Append(nil))
		output(s.Snapshot(screen.Snapshot{Lines: 1 << 20, Bytes: h.ring.Capacity() / 2}))
	} else {
		output(c.Screen)
		for _, e := range c.Events {
			if e.Output == nil {
				h.ring.Append(wire.Resize, wire.Sizing{Size: wire.Size{Cols: e.Cols, Rows: e.Rows}}.Append(nil))
			} else {
				output(e.Output)
			}
		}
	}
	_, y := s.Cursor()
	if s.Alternate() { // the question goes below what the program has shown
		_, y = s.Size()
	}
	output(fmt.Appendf(nil, "%s\x1b[%d;999H", afterProgram, y+1)) // some of it has moved the cursor
}

// replayed returns the screen of a record.
func replayed(c *persist.Contents) (s *screen.Screen) {
	s = screen.New(int(max(c.Cols, 1)), int(max(c.Rows, 1)), screen.Limits{})
	defer func() { recover() }() // what was drawn is shown
	s.Write(c.Screen)
	for _, e := range c.Events {
		if e.Output == nil {
			s.Resize(int(max(e.Cols, 1)), int(max(e.Rows, 1)))
		} else {
			s.Write(e.Output)
		}
	}
	return s
}

// afterProgram ends an unfinished control sequence, and all modes that change what keys send and
// where text goes. The screen stays.
const afterProgram = "\x18\x1b[r\x1b[?69l\x1b[?6l\x1b[?7h\x1b[4l\x1b(B\x0f\x1b[m\x1b[?25h\x1b[?1l\x1b>" +
	"\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?1016l" +
	"\x1b[?2004l\x1b[>4m\x1b[<99u\x1b[=0u\x1b[?2026l"

// revived makes the session one that lives.
func (h *Holder) revived() {
	h.gate.Lock()
	defer h.gate.Unlock()
	h.life.lost = false
	h.created, h.life.since = time.Now(), time.Now()
	h.log.Info("the command of a lost session was started again")
	h.stateChangedLocked()
	h.keeper.change()
}
