//go:build linux || darwin

package server

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/quicterm/monitor"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A server whose settings are empty, and that has no logger, works.
func TestZeroSettings(t *testing.T) {
	onHost(t, func(h *host) {
		h.stop()
		h.settings = &configs.Server{StateDir: h.settings.StateDir, RuntimeDir: h.settings.RuntimeDir, MaxUnauthenticated: -1,
			BufferSize: configs.Size{Bytes: -1}}
		h.logger = nil
		h.serve()
		if attached := h.attach(); !attached.PTY {
			t.Errorf("attached %+v, want a terminal", attached)
		}
	})
}

// A granted daemon ends when it had no client and no session for a while, and not before.
func TestGrantedDaemonEndsUnused(t *testing.T) {
	onHost(t, func(h *host) {
		h.attach()
		select {
		case <-h.done:
			t.Fatal("ended with a session")
		case <-time.After(24 * time.Hour):
		}
		h.holders.Kill()
		h.holders.Wait()
		start := time.Now()
		<-h.done
		if d := time.Since(start); d < monitor.MaxUnused*9/10 || d > monitor.MaxUnused*11/10 {
			t.Errorf("ended %v after the last session, want about %v", d, monitor.MaxUnused)
		}
	})
}

// A session that was killed does not count for max_sessions_per_user, although its holder
// waits for the client that is away.
func TestKilledSessionMakesRoom(t *testing.T) {
	onHost(t, func(h *host) {
		h.stop()
		h.settings.MaxSessionsPerUser = 1
		h.serve()
		first := h.attach()
		h.holders.Kill()
		time.Sleep(time.Second)
		if n := len(h.holders.Sessions(first.UID)); n != 1 {
			t.Fatalf("%d holders, want the one that waits", n)
		}
		h.attach()
	})
}

// Sessions whose programs have ended do not count for max_sessions_per_user, while their clients are away and
// have not seen the status. Their number has a bound of its own.
func TestExitedSessionMakesRoom(t *testing.T) {
	onHost(t, func(h *host) {
		h.stop()
		h.settings.MaxSessionsPerUser = 1
		h.serve()
		const most = 100
		for range most {
			h.attach()
			h.program.In.CloseWithError(io.EOF)
			time.Sleep(time.Second)
		}
		c, _, _ := h.dial(quic.Dial, false)
		defer c.Close()
		h.send(c, h.login(&wire.Attach{PTY: true})...)
		m, err := wire.Read(c, wire.MaxMessage)
		if err != nil || m.Type != wire.TypeError || !strings.Contains(string(m.Payload), "100 sessions that have exited") {
			t.Errorf("one more: %d %q, %v; want an error", m.Type, m.Payload, err)
		}
	})
}

// When the daemon ends, its clients learn that at once.
func TestEndTellsClients(t *testing.T) {
	onHost(t, func(h *host) {
		attached := h.attach()
		c, _, _ := h.dial(quic.DialEarly, false)
		h.send(c, resume(attached, 1))
		h.want("resume", c, wire.TypeResumed)
		start := time.Now()
		h.stop()
		<-c.Context().Done()
		if d := time.Since(start); d > roundTrip || !quic.PeerGone(context.Cause(c.Context())) {
			t.Errorf("after %v: %v; want the end within %v", d, context.Cause(c.Context()), roundTrip)
		}
	})
}
