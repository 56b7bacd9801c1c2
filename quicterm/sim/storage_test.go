//go:build linux || darwin

package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/quicterm/quicterm/quicterm/machine/memory"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// storageKinds are what happens to access, disks and memory. They are drawn from a source of their own, as resourceKinds.
var storageKinds = []*kind{
	{name: "access revoked", weight: 1, happen: func(w *world, f *fault) {
		m, _ := f.port(w)
		w.revoke(m, f)
	}},
	{name: "disk of records full", weight: 2, most: 5 * time.Minute, happen: func(w *world, f *fault) {
		f.undo = w.fillDisk()
	}},
	{name: "client's disk full", weight: 2, happen: func(w *world, f *fault) {
		recorders := slices.DeleteFunc(w.everyone(), func(a *actor) bool { return !a.whole || !a.present() })
		if len(recorders) > 0 {
			a := recorders[f.target%uint64(len(recorders))]
			a.mu.Lock()
			a.full = true
			a.mu.Unlock()
		}
	}},
	{name: "short memory", weight: 3, most: 10 * time.Minute, happen: func(w *world, f *fault) {
		w.free.Store(int64(f.x * shortMemory))
		f.undo = func() { w.free.Store(plentyMemory) }
		if s := w.sessions[f.target%uint64(len(w.sessions))]; s.pty() && s.lives() && s.ring == 0 {
			w.running.Go(func() { s.flood(rand.New(rand.NewPCG(f.target, 8))) })
		}
	}},
}

// flood prints more than a ring has while memory is short.
func (s *session) flood(rng *rand.Rand) {
	for range 3 << 10 {
		if !s.program.print(append(noise(rng, 1<<10), "\r\n"...)) {
			return
		}
	}
}

// The parts of the server's memory that are free, in percent: while it is short at most shortMemory. With less than half of
// that, holders give up output.
const (
	plentyMemory = 50
	shortMemory  = 10
)

// readMemory is what holders know of the memory of their machine.
func (w *world) readMemory() (memory.State, error) {
	return memory.State{Total: 100 << 30, Available: uint64(w.free.Load()) << 30}, nil
}

// keepDelay is how long after a change a holder writes its record, twice.
const keepDelay = 10 * time.Second

// records returns the directory in which the holder of a session keeps its record, or nothing.
func (s *session) records() string {
	if !s.pty() || s.seed%2 != 0 {
		return ""
	}
	return filepath.Join(s.world.host.dir, "records of "+s.name)
}

// fillDisk makes all writes of records fail until undo is called. What is there can be read and removed.
func (w *world) fillDisk() (undo func()) {
	var blocks []string
	for id, name := range w.host.holders.byName() {
		s := w.session(name)
		if s == nil || s.records() == "" {
			continue
		}
		// A record is written under this name at first, from which the holder removes a file.
		block := filepath.Join(s.records(), id.String()+".new")
		if err := os.MkdirAll(filepath.Join(block, "full"), 0o700); err != nil {
			w.trace("the disk of %s is not full: %v", name, err)
			continue
		}
		blocks = append(blocks, block)
		s.mu.Lock()
		s.unkept = true
		s.mu.Unlock()
	}
	return func() {
		for _, block := range blocks {
			if err := os.RemoveAll(block); err != nil {
				w.failf("the disk of records: %v", err)
			}
		}
	}
}

// checkLost checks what the holder of a session that is killed now leaves on the disk: its record, whole, if the
// disk has ever taken one.
func (w *world) checkLost(s *session) {
	dir := s.records()
	if dir == "" {
		return
	}
	s.mu.Lock()
	due := !s.unkept && !s.since.IsZero() && time.Since(s.since) > 2*keepDelay
	s.mu.Unlock()
	for id, name := range w.host.holders.byName() {
		if name != s.name {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, id.String()))
		if err != nil {
			if due {
				w.failf("the holder of %s is killed, and has kept nothing: %v", name, err)
			}
			return
		}
		lost, err := wire.DecodeLost(b)
		if err != nil || lost.Name != name || due && len(lost.Screen) == 0 {
			w.failf("the holder of %s is killed, and its record is not whole: %v", name, err)
		}
		w.reached("holder killed: record left")
	}
}

// checkRecords checks that sessions that are over have left no record.
func (w *world) checkRecords() {
	for _, s := range w.sessions {
		dir := s.records()
		if dir == "" || s.lost {
			continue
		}
		if files, err := os.ReadDir(dir); err == nil && len(files) > 0 {
			w.failf("session %s has ended, and has left the record %s", s.name, files[0].Name())
		}
	}
}

// readHolder checks what the holder of a session logs: that a disk that takes no records is told of, once. When the
// program has ended, it reads how long the holder's log is.
func (l processLog) readHolder(message string) {
	fails := false
	switch {
	case strings.HasPrefix(message, "the session is not kept on disk"):
		l.world.reached("record not kept")
		fails = true
	case strings.HasPrefix(message, "the session is kept on disk again"):
		l.world.reached("record kept again")
	case strings.HasPrefix(message, "output dropped, because the machine is short of memory"):
		l.world.reached("output dropped for memory")
		return
	case message == "program ended": // the holder has locked the ring
		if ring, _ := l.world.host.holders.ring(l.session); ring != nil {
			l.session.mu.Lock()
			defer l.session.mu.Unlock()
			l.session.logged = ring.Offset(ring.Next())
			l.session.exit = l.session.logged - ring.Offset(ring.Next()-1)
		}
		return
	default:
		return
	}
	l.session.mu.Lock()
	defer l.session.mu.Unlock()
	if l.session.toldUnkept == fails {
		l.world.failf("session %s: %q is told for the second time", l.session.name, message)
	}
	l.session.toldUnkept = fails
}
