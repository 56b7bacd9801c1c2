//go:build linux || darwin

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/quicterm/quicterm/bench/rig"
)

// Of 200 commands that one account starts at once from one address, none fails: a client that the busy daemon
// refuses tries again, and the daemon makes those wait that come faster than max_sessions_per_user allows for.
// The programs themselves may keep a slow machine from answering for longer than a client waits: then half as
// many start, but never fewer than 50.
func TestCommandsAtOnce(t *testing.T) {
	h := newHostAlone(t)
	h.Start()
	const least = 50
	atOnce := 200
	if raceEnabled {
		atOnce = least
	}
	for ; ; atOnce /= 2 {
		late, failed := commandsAtOnce(h, atOnce)
		if len(failed) > 0 || len(late) > 0 && atOnce == least {
			t.Fatalf("of %d commands %d get no answer in time, and %d fail: %q", atOnce, len(late), len(failed), append(failed, late...)[0])
		}
		if len(late) == 0 {
			return
		}
		t.Logf("of %d commands at once, %d get no answer in time", atOnce, len(late))
	}
}

// commandsAtOnce starts a number of commands. It returns the errors of those that got no answer in time, or no place
// because others had none, and of those that failed otherwise.
func commandsAtOnce(h *rig.Host, number int) (late, failed []string) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range number {
		command := h.QT("connect", "echo done")
		wg.Go(func() {
			var errs bytes.Buffer // one that asks again says so
			command.Stderr = &errs
			out, err := command.Output()
			if err == nil && string(out) == "done\n" {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if why := fmt.Sprintf("%v: %s%s", err, out, &errs); strings.Contains(why, "no answer within") || strings.Contains(why, "max_unauthenticated") {
				late = append(late, why)
			} else {
				failed = append(failed, why)
			}
		})
	}
	wg.Wait()
	return late, failed
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
