//go:build linux || darwin

package monitor

import (
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/quicterm/quicterm/quicterm/monitor/processes"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A listing of any number of sessions fits into a message: it has the latest ones.
func TestListFits(t *testing.T) {
	info, err := wire.EncodeInfo(wire.Info{Name: "work", Command: strings.Repeat("x", wire.MaxSummary)})
	if err != nil {
		t.Fatal(err)
	}
	entries := make([]entry, processes.MaxSockets)
	for i := range entries {
		entries[i].state.Info = info
	}
	for _, n := range []int{0, 1, len(entries)} {
		l := list(entries[:n])
		if _, err := wire.New(l); err != nil {
			t.Errorf("%d sessions: %v", n, err)
		}
		if got := len(l.Sessions) + l.More; got != n {
			t.Errorf("%d sessions: %d are listed and %d left out", n, len(l.Sessions), l.More)
		}
		if n == 1 && l.More != 0 {
			t.Error("a single session is left out")
		}
	}
}

func TestSummary(t *testing.T) {
	long := strings.Repeat("é", wire.MaxSummary)
	for _, command := range []string{"", "ls", long, "x" + long, "\x80" + long} {
		got := summary(command)
		if !strings.HasPrefix(command, got) || len(got) > wire.MaxSummary || len(command) > wire.MaxSummary && len(got) < wire.MaxSummary-utf8.UTFMax {
			t.Errorf("%.20q… of %d bytes: %d bytes", command, len(command), len(got))
		}
		if utf8.ValidString(command) && !utf8.ValidString(got) {
			t.Errorf("%.20q…: cut inside a character", command)
		}
	}
}

// Who watches and names no session gets the latest that runs in a terminal, also while its
// writer is there.
func TestPickToWatch(t *testing.T) {
	entries := []entry{
		{state: wire.State{Own: true, Name: "pipe", Phase: wire.PhaseAttached}},
		{state: wire.State{Own: true, PTY: true, Name: "ended", Phase: wire.PhaseExited}},
		{state: wire.State{Own: true, PTY: true, Name: "latest", Phase: wire.PhaseAttached}},
		{state: wire.State{Own: true, PTY: true, Name: "detached", Phase: wire.PhaseDetached}},
	}
	for name, wanted := range map[string]func(*entry) bool{"latest": anyTerminal, "detached": detached} {
		if e, err := pick(entries, "", wanted); err != nil || e.state.Name != name {
			t.Errorf("got %+v, %v; want %s", e, err, name)
		}
	}
	lost := []entry{{state: wire.State{Own: true, PTY: true, Name: "lost", Phase: wire.PhaseLost}}}
	if e, err := pick(lost, "", detached); err != nil || e.state.Name != "lost" {
		t.Errorf("got %+v, %v; want the session whose holder waits for an answer", e, err)
	}
}

// A daemon that has no descriptor to ask a session's holder does not say that there is no such session.
func TestSessionThatCannotBeAsked(t *testing.T) {
	onHost(t, func(h *host) {
		name := h.attach().Name
		h.holders.Fail(syscall.EMFILE)
		defer h.holders.Fail(nil)
		_, err := h.server.Attach(h.t.Context(), h.request(&wire.Attach{Mode: wire.ModeAttach, Session: name, PTY: true}))
		if err == nil || !strings.Contains(err.Error(), "sessions that do not answer: 1") {
			t.Errorf("error %v, want one that tells of the session that does not answer", err)
		}
	})
}
