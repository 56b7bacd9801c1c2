//go:build linux || darwin

package holder

import (
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A guest gets no more than a role that its share allows, whatever it asks for, and only until its time.
func TestGuestOfSession(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: wire.Size{Cols: 80, Rows: 24}}, func(w *world) {
		w.attach("a@x")
		until := time.Now().Add(time.Hour).Unix()
		open := func(types bool) *wire.Open {
			return &wire.Open{Client: "guest x@y", Guest: &wire.Guest{Types: types, Until: until}}
		}
		refused := func(why string, open *wire.Open, req wire.Body) {
			t.Helper()
			var refusal wire.Error
			if m, _ := w.ask(open, req); m.Decode(&refusal) != nil || refusal.Text == "" {
				t.Errorf("%s: message %d", why, m.Type)
			}
		}
		for _, types := range []bool{false, true} {
			for _, req := range []wire.Body{
				&wire.Kill{}, &wire.Clear{}, &wire.Rename{Name: "x"}, &wire.Inspect{}, &wire.Revoke{All: true}, &wire.End{},
				&wire.Appeared{}, &wire.OfferFile{},
				&wire.Attach{PTY: true, Mode: wire.ModeAttach}, &wire.Attach{PTY: true, Role: wire.RolePeek},
				&wire.Attach{PTY: true, Role: wire.RolePeek + 1},
			} {
				refused("a guest", open(types), req)
			}
		}
		refused("a guest who watches and would type", open(false), &wire.Attach{PTY: true, Role: wire.RoleShare})
		ended := open(false)
		ended.Guest.Until = time.Now().Unix()
		refused("a share that has ended", ended, &wire.Attach{PTY: true, Role: wire.RoleWatch})

		// What else it asks for is left out.
		for _, role := range []wire.Role{wire.RoleWatch, wire.RoleShare} {
			m, _ := w.ask(open(true), &wire.Attach{
				PTY: true, Role: role, Size: wire.Size{Cols: 10, Rows: 10}, Own: true, Whole: true,
				Replay: wire.Replay{Kind: wire.ReplayRaw}, Hints: wire.HintsProgram, Input: []byte("x"), Instance: wire.InstanceID{byte(role)},
			})
			var attached wire.Attached
			w.want("attach of a guest", m, &attached)
			w.locked(func(h *Holder) {
				a := h.clients.find(wire.InstanceID{byte(role)})
				for _, frame := range []buffer.Frame{
					{Type: wire.Resize, Payload: wire.Size{Cols: 9, Rows: 9}.Append(nil)},
					{Type: wire.Take, Payload: wire.Size{Cols: 9, Rows: 9}.Append(nil)},
					{Type: wire.Signal, Payload: []byte("HUP")},
				} {
					h.handleUrgentLocked(a, frame)
				}
				if a.records || a.lines != 0 || !a.takesSnapshots || !a.skips || a.size != (wire.Size{}) || h.life.hungUp {
					t.Errorf("a guest in role %v: %+v", role, a)
				}
				if h.ownership.Size != (wire.Size{Cols: 80, Rows: 24}) || h.ownership.Owner == a.number {
					t.Errorf("a guest changes the size to %v", h.ownership.Size)
				}
			})
		}
		time.Sleep(time.Hour + time.Second)
		w.locked(func(h *Holder) {
			for _, a := range h.clients.all {
				if a.guest != (a.role == roleRevoked) || a.guest && (!a.closed || !strings.Contains(a.revoked, "share has ended")) {
					t.Errorf("after the end of the share: %s, role %d, %q", a.client, a.role, a.revoked)
				}
			}
		})
	})
}

// A client that asks again for an attachment gets only its own: no guest that of somebody else or of another share, and
// nobody that of a guest. Others may log in again in another way.
func TestInstanceOfAnother(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: wire.Size{Cols: 80, Rows: 24}}, func(w *world) {
		guest := func(key string) *wire.Open {
			return &wire.Open{Client: "guest", Key: []byte(key), Guest: &wire.Guest{Until: time.Now().Add(time.Hour).Unix()}}
		}
		own, shared := wire.InstanceID{1}, wire.InstanceID{2}
		for i, test := range []struct {
			open     *wire.Open
			instance wire.InstanceID
			role     wire.Role
			refused  bool
		}{
			{&wire.Open{Client: "a@x", Key: []byte("device")}, own, wire.RoleWriter, false},
			{guest("share"), own, wire.RoleWatch, true},
			{guest("device"), own, wire.RoleWatch, true},
			{&wire.Open{Client: "a@x", Key: []byte("another")}, own, wire.RoleWriter, false},
			{&wire.Open{Client: "a@x", Proof: "ssh"}, own, wire.RoleWriter, false},
			{guest("share"), shared, wire.RoleWatch, false},
			{guest("share"), shared, wire.RoleWatch, false},
			{guest("another"), shared, wire.RoleWatch, true},
			{&wire.Open{Client: "a@x", Key: []byte("share")}, shared, wire.RoleWriter, true},
		} {
			m, _ := w.ask(test.open, &wire.Attach{PTY: true, Role: test.role, Instance: test.instance})
			if err := m.Decode(new(wire.Attached)); (err != nil) != test.refused {
				t.Errorf("%d: message %d, %v", i, m.Type, err)
			}
		}
		w.locked(func(h *Holder) {
			if a := h.clients.find(own); a.login.Proof != "ssh" || a.guest {
				t.Errorf("the attachment is another's: %+v", a.login)
			}
		})
	})
}

// guest attaches by a share for an hour.
func (w *world) guest(name string, role wire.Role) *client {
	w.t.Helper()
	w.instances++
	share := &wire.Guest{Types: true, Until: time.Now().Add(time.Hour).Unix()}
	c, conn := w.joinBy(wire.Open{Client: name, Guest: share}, &wire.Attach{
		Instance: wire.InstanceID{0xfe, byte(w.instances)}, PTY: true, Role: role,
	})
	c.run(conn, true)
	return c
}

// Shares leave places for others, who get those of guests as well, and of guests who are away other guests do.
func TestPlacesOfGuests(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, MaxWatchers: maxShares + 2}, func(w *world) {
		w.attach("a@x")
		first := w.guest("guest 0", wire.RoleShare)
		second := w.guest("guest 1", wire.RoleWatch)
		for range maxShares - 2 {
			w.guest("guest", wire.RoleWatch)
		}
		open := &wire.Open{Client: "guest more", Guest: &wire.Guest{Until: time.Now().Add(time.Hour).Unix()}}
		more := &wire.Attach{Instance: wire.InstanceID{1}, PTY: true, Role: wire.RoleWatch}
		var refusal wire.Error
		m, _ := w.ask(open, more)
		w.want("one more guest", m, &refusal)
		second.hangUp()
		time.Sleep(awayGrace)
		w.guest("instead", wire.RoleWatch)
		m, _ = w.ask(open, more)
		w.want("one more guest", m, &refusal)
		for range 2 {
			w.attachAs("b@x", wire.RoleWatch)
		}
		w.locked(func(h *Holder) {
			if h.clients.find(second.instance) != nil || h.clients.find(first.instance) == nil {
				t.Error("another guest has made room than the one that was away")
			}
		})
		w.attachAs("b@x", wire.RoleWatch)
		w.locked(func(h *Holder) {
			if h.clients.find(first.instance) != nil {
				t.Error("the first guest keeps the place of somebody who has not come by a share")
			}
		})
	})
}

// A guest who types is told of nobody.
func TestGuestLearnsOfNobody(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		w.attach("a@x")
		before := w.attachAs("b@x", wire.RoleWatch)
		g, own := w.guest("guest", wire.RoleShare), w.attachAs("c@x", wire.RoleShare)
		w.attachAs("d@x", wire.RoleWatch)
		before.leave()
		time.Sleep(time.Second)
		w.settle()
		if told := own.told(); len(told) < 2 {
			t.Errorf("somebody who types is told %q", told)
		}
		if told := g.told(); len(told) > 0 {
			t.Errorf("a guest is told %q", told)
		}
	})
}

// A guest who comes back after the end of its share is refused, though a timer was late.
func TestGuestComesBackLate(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		w.attach("a@x")
		g := w.guest("guest", wire.RoleWatch)
		g.hangUp()
		w.locked(func(h *Holder) { h.clients.find(g.instance).until = time.Now().Unix() })
		m, _ := w.ask(&wire.Open{}, g.statement())
		var refusal wire.Error
		if w.want("a guest who comes back", m, &refusal); refusal.Code != wire.CodeWithdrawn {
			t.Errorf("told %+v", refusal)
		}
	})
}
