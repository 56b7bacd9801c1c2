//go:build linux || darwin

package e2e

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/quicterm/quicterm/bench/rig"
)

// Of 200 commands that one account starts at once from one address, none fails: a client that the busy daemon
// refuses tries again, and the daemon makes those wait that come faster than max_sessions_per_user allows for.
func TestCommandsAtOnce(t *testing.T) {
	h := newHostAlone(t)
	h.Start()
	commands := make([]*exec.Cmd, 200)
	if raceEnabled { // whose programs alone would take the processors for longer than a client waits for an answer
		commands = commands[:50]
	}
	for i := range commands {
		commands[i] = h.QT("connect", "echo done")
	}
	var wg sync.WaitGroup
	for i, c := range commands {
		wg.Go(func() {
			if out, err := c.CombinedOutput(); err != nil || string(out) != "done\n" {
				t.Errorf("command %d: %v\n%s", i, err, out)
			}
		})
	}
	wg.Wait()
}

// 100 programs end at once: each client gets the status, and no session stays behind as exited.
func TestExitsAtOnce(t *testing.T) {
	h := newHostAlone(t)
	h.Start()
	const sessions = 100
	gate := h.Path("gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	open := make([]*rig.Terminal, sessions)
	for batch := range slices.Chunk(open, 10) { // only the ends come at once
		for i := range batch {
			batch[i] = rig.Open(t, h.Via(h.Addr, "connect", []string{"-t"}, "echo ready; read x < "+gate+"; exit 7"))
		}
		for _, x := range batch {
			x.Expect("ready")
		}
	}
	w, err := os.OpenFile(gate, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.WriteString(strings.Repeat("\n", sessions)); err != nil { // each reads one
		t.Fatal(err)
	}
	for i, x := range open {
		if status := x.Exit(); status != 7 {
			t.Errorf("session %d ended with status %d, want 7", i, status)
		}
	}
	if out := string(mustOutput(t, h.QT("ls"))); strings.Contains(out, "exited") {
		t.Errorf("sessions whose status every client has:\n%s", out)
	}
}
