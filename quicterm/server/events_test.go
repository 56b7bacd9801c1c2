//go:build linux || darwin

package server

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// What clients do to sessions is in the log, and why they get none. A client that comes back to a session which
// has ended is no reason to warn.
func TestEvents(t *testing.T) {
	onHost(t, func(h *host) {
		h.stop()
		h.settings.MaxSessionsPerUser = 2
		h.holders.Change = func(launch *wire.Launch) { launch.MaxWatchers = 1 }
		h.serve()
		ask := func(request wire.Body, want wire.Type) {
			t.Helper()
			c, _, _ := h.dial(quic.Dial, false)
			defer c.Close()
			h.send(c, h.login(request)...)
			h.want("request", c, want)
		}
		logged := func(level, event, words string) {
			t.Helper()
			h.log.await(t, "event="+event, 1)
			for line := range strings.Lines(h.log.String()) {
				if strings.Contains(line, "event="+event) && strings.Contains(line, words) &&
					strings.Contains(line, "level="+level) {
					return
				}
			}
			t.Errorf("no line of level %s about %s has %s in\n%s", level, event, words, h.log.String())
		}
		a := h.attach()
		ask(&wire.Attach{PTY: true, Session: "other"}, wire.TypeAttached)
		ask(&wire.Attach{PTY: true, Session: "third"}, wire.TypeError)
		logged("WARN", "refuse", "session=third event=refuse error=") // max_sessions_per_user
		watch := &wire.Attach{PTY: true, Role: wire.RoleWatch, Mode: wire.ModeAttach, Session: a.Name,
			Instance: wire.InstanceID{1}}
		ask(watch, wire.TypeAttached)
		watch.Instance = wire.InstanceID{2}
		ask(watch, wire.TypeError)
		logged("WARN", "refuse", "has 1 clients beside its writer already") // the holder's answer
		h.server.Drain(true)
		ask(&wire.Attach{PTY: true, Session: "later"}, wire.TypeError)
		logged("WARN", "refuse", "session=later event=refuse error=\"the server")
		h.server.Drain(false)

		ask(&wire.Clear{Session: a.Name}, wire.TypeCleared)
		logged("INFO", "clear", "session="+a.Name+" id="+a.ID.Short())
		ask(&wire.Revoke{Key: make([]byte, 32)}, wire.TypeRevoked)
		logged("INFO", "revoke", "revoked=SHA256:AAAA")
		ask(&wire.Kill{Session: "other"}, wire.TypeDone)
		logged("INFO", "kill", "session=other id=")

		h.holders.Kill()
		h.log.await(t, "event=end", 1)
		warnings := strings.Count(h.log.String(), "level=WARN")
		h.holders.Fail(fs.ErrNotExist)
		defer h.holders.Fail(nil)
		c, _, _ := h.dial(quic.Dial, false)
		defer c.Close()
		r := resume(a, 1)
		r.Boot = a.Boot
		h.send(c, r)
		h.want("resume", c, wire.TypeDenied)
		logged("INFO", "gone", "id="+a.ID.Short())
		for range 12 { // its other paths
			c, _, _ := h.dial(quic.Dial, false)
			h.send(c, r)
			h.want("resume", c, wire.TypeDenied)
			c.Close()
		}
		r.Instance[0]++
		other, _, _ := h.dial(quic.Dial, false)
		defer other.Close()
		h.send(other, r)
		h.want("resume of another client", other, wire.TypeDenied)
		h.log.await(t, "event=gone", 2)
		if n := strings.Count(h.log.String(), "event=gone"); n != 2 {
			t.Errorf("%d lines for two clients that come back in vain", n)
		}
		if n := strings.Count(h.log.String(), "level=WARN"); n > warnings {
			t.Errorf("%d warnings for a client that comes back in vain", n-warnings)
		}
	})
}
