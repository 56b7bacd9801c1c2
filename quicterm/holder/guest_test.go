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
				&wire.Appeared{},
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
				if h.ownership.size != (wire.Size{Cols: 80, Rows: 24}) || h.ownership.owner == a.number {
					t.Errorf("a guest changes the size to %v", h.ownership.size)
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
