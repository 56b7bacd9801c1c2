//go:build linux || darwin

package holder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/quicterm/persist"
	"github.com/quicterm/quicterm/quicterm/rundir"
	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
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

	// keepEnd bounds how long a holder that ends waits for the disk.
	keepEnd = 2 * time.Second

	// eventSize is more than an event takes on disk beside its output.
	eventSize = 64

	// maxKey bounds the size of a file with a key, minKey what is enough of one.
	maxKey, minKey = 4 << 10, 32
)

// A keeper keeps the record of a session.
type keeper struct {
	config wire.Persist
	log    *slog.Logger

	changed chan struct{} // something is not kept yet; buffers one
	flush   chan chan struct{}
	screens chan kept // answers wanted
	done    chan struct{}

	// keepLoop alone uses these.
	record *persist.Record
	key    []byte
	failed bool // and that was logged

	mu      sync.Mutex
	next    uint64          // the first frame that was not drawn yet: after a fault some are drawn again
	wanted  bool            // drawLoop is to send a screen
	cleared bool            // what was kept must not be kept any longer
	events  []persist.Event // output that was drawn and is not written yet, if there is a log
	size    int             // of that
	skipped bool            // it was too much to be written
}

// A kept is a screen and the output before it that is not written yet.
type kept struct {
	state   persist.State
	events  []persist.Event
	skipped bool
	cleared bool
}

// newKeeper returns the keeper that a launch asks for, or nil.
func newKeeper(launch *wire.Launch, log *slog.Logger) *keeper {
	if launch.Persist == nil || !launch.PTY {
		return nil
	}
	return &keeper{
		config: *launch.Persist, log: log,
		changed: make(chan struct{}, 1), flush: make(chan chan struct{}), screens: make(chan kept, 1), done: make(chan struct{}),
	}
}

// change makes keepLoop write what has changed.
func (k *keeper) change() {
	if k == nil {
		return
	}
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// frame keeps a frame that is drawn, in a log.
func (k *keeper) frame(f buffer.Frame) {
	if k == nil || !k.config.Log {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if f.Seq < k.next {
		return
	}
	k.next = f.Seq + 1
	var e persist.Event
	switch f.Type {
	case wire.Stdout:
		e.Output = f.Payload
	case wire.Resize:
		size, err := wire.ParseSize(f.Payload)
		if err != nil {
			return
		}
		e.Cols, e.Rows = size.Cols, size.Rows
	default:
		return
	}
	// Most of a flood would be removed as soon as it is written.
	if k.size += len(e.Output) + eventSize; int64(k.size) > k.config.Bytes/16 {
		k.events, k.skipped = nil, true
		return
	}
	e.Output = bytes.Clone(e.Output)
	k.events = append(k.events, e)
}

// screenSize returns how large a screen may be. There are two files at a time. One of a log ends when it has
// 3/8 of the size, and 1/16 may be appended then twice.
func (k *keeper) screenSize() int {
	size := k.config.Bytes / 2
	if k.config.Log {
		size = k.config.Bytes / 4
	}
	return int(min(size, session.MaxSnapshot))
}

// take returns the output that is not written yet.
func (k *keeper) take() (events []persist.Event, skipped bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	events, skipped = k.events, k.skipped
	k.events, k.size, k.skipped = nil, 0, false
	return events, skipped
}

// flooded reports whether there was more output than is written to the log.
func (k *keeper) flooded() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.skipped
}

// clear removes what was kept, with the next screen that is kept or cannot be: after keepMost at the latest, unless
// the disk does not answer.
func (k *keeper) clear() {
	if k == nil {
		return
	}
	k.mu.Lock()
	k.cleared = true
	k.mu.Unlock()
	k.change()
}

// keepChangedLocked makes keepLoop write the record, unless that is of a lost session, which stays as it is.
func (h *Holder) keepChangedLocked() {
	if !h.life.lost {
		h.keeper.change()
	}
}

func (k *keeper) wants() bool {
	if k == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.wanted
}

// keepScreenLocked gives keepLoop the screen if it waits for that. It runs in drawLoop.
func (h *Holder) keepScreenLocked() {
	e, k := &h.emulator, h.keeper
	if !k.wants() {
		return
	}
	s := kept{state: persist.State{Facts: h.factsLocked()}}
	s.state.Facts.Cols, s.state.Facts.Rows = e.size.Cols, e.size.Rows
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

// write writes a screen to a new file. If not anew, the file before is kept, with the output up to the screen.
func (k *keeper) write(s *kept, anew bool) error {
	if s.state.Screen == nil {
		return fmt.Errorf("its screen takes more than %d bytes of persist_size", k.screenSize())
	}
	if !anew {
		if _, err := k.record.Append(s.events, nil, k.config.Sync); err != nil {
			return err
		}
	}
	return k.record.Begin(&s.state, k.key, !anew, k.config.Sync)
}

// open makes the record, unless there is one.
func (k *keeper) open(launch *wire.Launch) error {
	if k.record != nil {
		return nil
	}
	key, err := readKey(k.config.Key)
	if err != nil {
		return err
	}
	store, err := openStore(&k.config)
	if err != nil {
		return err
	}
	if err := store.Prune(time.Now(), k.config.TTL); err != nil {
		k.log.Warn("old records cannot be removed", "error", err)
	}
	if k.record, err = store.Create(launch.ID.String()); err != nil {
		store.Close()
		return err
	}
	k.key = key
	return nil
}

// openStore opens the directory of this account's records, and makes it.
func openStore(config *wire.Persist) (*persist.Store, error) {
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return nil, err
	}
	root, err := rundir.Open(config.Dir)
	if err != nil {
		return nil, err
	}
	store, err := persist.New(root)
	if err != nil {
		root.Close()
	}
	return store, err
}

// readKey reads the file with the account's key. It returns nil if there is to be none.
func readKey(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("persist_key: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("persist_key: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.Mode().IsRegular() || !ok || int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("persist_key: %s must be a file of this account that no other can read: chmod 600", path)
	}
	key, err := io.ReadAll(io.LimitReader(f, maxKey+1))
	if err != nil {
		return nil, fmt.Errorf("persist_key: %w", err)
	}
	if len(key) < minKey || len(key) > maxKey {
		return nil, fmt.Errorf("persist_key: %s has %d bytes, it must have %d to %d: "+
			"head -c 32 /dev/urandom makes a key", path, len(key), minKey, maxKey)
	}
	return key, nil
}

// finish removes the record, or leaves it to others. It blocks until that is done, but not for long: a
// disk may hang.
func (k *keeper) finish(remove bool) {
	if k == nil {
		return
	}
	end := time.NewTimer(keepEnd)
	defer end.Stop()
	removed := make(chan error, 1)
	go func() { // it ends with the process, if the disk hangs
		<-k.done
		err := fs.ErrNotExist
		if remove && k.record != nil {
			err = k.record.Remove()
		} else {
			k.record.Close()
		}
		removed <- err
	}()
	select {
	case <-end.C:
		k.log.Error("the record of the session may be left: the disk does not answer")
	case err := <-removed:
		if remove && err != nil && !errors.Is(err, fs.ErrNotExist) {
			k.log.Error("the record of the session cannot be removed", "error", err)
		}
	}
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
