//go:build linux || darwin

package holder

import (
	"slices"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// joinForwarding attaches a client whose login may forward.
func (w *world) joinForwarding(name string, role wire.Role) *client {
	w.t.Helper()
	w.instances++
	c, conn := w.joinBy(wire.Open{Client: name, Forwards: true}, &wire.Attach{
		Instance: wire.InstanceID{0xfd, byte(w.instances)}, PTY: true, Size: wire.Size{Cols: 80, Rows: 24}, Role: role,
	})
	c.run(conn, true)
	return c
}

func (c *client) wantPorts(why string, want ...string) {
	c.w.t.Helper()
	c.gate.Lock()
	defer c.gate.Unlock()
	var got []string
	for _, n := range c.notices {
		if n.Code == wire.NoticePorts {
			got = append(got, n.Text)
		}
	}
	if !slices.Equal(got, want) {
		c.w.t.Errorf("%s: ports %q, want %q", why, got, want)
	}
}

// Writers that may forward are told of ports, and nobody else except by the events; they are looked for after output,
// not often, and only while there is somebody to tell.
func TestPorts(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: wire.Size{Cols: 80, Rows: 24}}, func(w *world) {
		w.program.SetPorts(5173)
		w.print("ready")
		time.Sleep(time.Minute)
		other := w.attach("other@x")
		time.Sleep(time.Minute)
		if n := w.program.Looks(); n != 0 {
			t.Errorf("%d looks for nobody", n)
		}
		a := w.joinForwarding("a@x", wire.RoleShare)
		time.Sleep(time.Minute)
		if n := w.program.Looks(); n != 1 {
			t.Errorf("%d looks when a client has come", n)
		}
		a.wantPorts("one that listens already", "5173")
		watcher := w.joinForwarding("w@x", wire.RoleWatch)
		reader := w.reader(0)
		w.program.SetPorts(80, 5173)
		for range 100 {
			w.print("more")
			time.Sleep(100 * time.Millisecond)
		}
		if n := w.program.Looks(); n < 4 || n > 8 {
			t.Errorf("%d looks in 10 s with output", n)
		}
		a.hangUp()
		w.program.SetPorts(80)
		w.print("more")
		time.Sleep(time.Second * 5)
		reader.wantHappened("events", "6 port-opened 80", "7 port-closed 5173")
		a.resume()
		time.Sleep(time.Second)
		a.wantPorts("after an outage", "5173", "80 5173", "80")
		other.wantPorts("a writer that may not forward")
		watcher.wantPorts("one that watches")
		w.program.SetPorts()
		w.print("more")
		time.Sleep(time.Second * 5)
		a.wantPorts("when it has closed", "5173", "80 5173", "80", "")
	})
}
