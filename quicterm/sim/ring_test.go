//go:build linux || darwin

package main

import (
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/quicterm/session/gate"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// changedFrames is how many of the last frames of a ring may be changed: those are the ones that a client waits for that
// has no connection.
const changedFrames = 20

// changeRing changes a bit of a frame in the ring of a session's holder, as bad memory does. The screen has all frames.
func (w *world) changeRing(s *session, rng *rand.Rand) {
	ring, lock := w.host.holders.ring(s)
	if ring == nil {
		return
	}
	lock.Lock()
	end := ring.Next()
	lock.Unlock()
	time.Sleep(time.Second) // until the screen has what was printed before
	lock.Lock()
	defer lock.Unlock()
	first := max(ring.First(), end-min(end, changedFrames))
	if first >= end {
		return
	}
	frame, _ := ring.Slice(first+rng.Uint64N(end-first), 1)
	const header, trailer = 12, 4
	if payload := frame[header : len(frame)-trailer]; len(payload) > 0 {
		payload[rng.IntN(len(payload))] ^= 1 << rng.IntN(8)
		w.reached("frame changed in a ring")
	}
}

// byName returns the names of the sessions that there are.
func (h *holders) byName() map[wire.SessionID]string {
	names := make(map[wire.SessionID]string)
	for _, id := range h.Sessions(0) {
		h.mu.Lock()
		names[id] = h.names[id]
		h.mu.Unlock()
	}
	return names
}

// ring returns the ring of a session's holder, and what guards it, or nil if the session is over. No process can change
// them but the holder itself, and bad memory.
func (h *holders) ring(s *session) (*buffer.Ring, *gate.Gate) {
	var id wire.SessionID
	for other, name := range h.byName() {
		if name == s.name {
			id = other
		}
	}
	all := reflect.ValueOf(h.Holders).Elem()
	mu := (*sync.Mutex)(all.FieldByName("mu").Addr().UnsafePointer())
	mu.Lock()
	defer mu.Unlock()
	keeper := all.FieldByName("byID").MapIndex(reflect.ValueOf(id))
	if !keeper.IsValid() {
		return nil, nil
	}
	ring, lock := keeper.Elem().FieldByName("ring"), keeper.Elem().FieldByName("gate").Addr()
	return (*buffer.Ring)(ring.UnsafePointer()), (*gate.Gate)(lock.UnsafePointer())
}

// A client that comes back when a frame that it waits for has changed is told that it is lost, and sees the rest. What it
// is told that it has lost counts the sizes that its terminal had in the outage.
func TestChangedRing(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		link := netem.Config{Delay: trip / 2}
		w := newWorld(1, dir)
		w.newMachine("m", link)
		s := w.newSession("s0", "shell")
		w.sessions = []*session{s}
		a := w.newActor("c0", w.machines[0], s, wire.RoleWriter)
		w.startDaemon()
		w.running.Go(a.run)
		w.running.Go(w.readMeters)
		time.Sleep(10 * time.Second)
		w.set(0, netem.Config{Down: true})
		for i := range uint16(changedFrames) {
			time.Sleep(time.Second)
			s.program.print([]byte("what is printed in the outage\r\n"))
			for rows := range uint16(50) {
				a.current().Resize(wire.Size{Cols: 80 + i, Rows: 1 + rows})
			}
		}
		w.changeRing(s, rand.New(rand.NewPCG(1, 0)))
		w.set(0, link)
		w.heal()
		w.check()
		w.close()
		if w.states["frame changed in a ring"] != 1 || w.states["gap told"] != 1 {
			t.Errorf("changed %d frames, and told of %d gaps", w.states["frame changed in a ring"], w.states["gap told"])
		}
		for _, failure := range w.failures {
			t.Error(failure)
		}
	})
}
