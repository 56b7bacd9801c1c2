//go:build linux

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
)

// quiet is a shell without marks, whose prompt is known.
const quiet = "exec env PS1='$ ' HISTFILE= bash --norc --noprofile"

// driven starts a session with a program on a terminal, and leaves it.
func driven(t *testing.T, h *rig.Host, name, program string) {
	t.Helper()
	if out, err := h.Via(h.Addr, "connect", []string{"-d", "-s", name}, program).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// drive runs a verb on a session and returns its output and its exit status. Those that never end do so here.
func drive(t *testing.T, h *rig.Host, verb, flags string, args ...string) (output string, status int) {
	t.Helper()
	cmd := h.Via(h.Addr, verb, strings.Fields(flags), args...)
	timer := time.AfterFunc(rig.Patience, func() { cmd.Process.Kill() })
	defer timer.Stop()
	out, err := cmd.CombinedOutput()
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatalf("%s %q: %v\n%s", verb, args, err, out)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// A command line that is run in a session's shell gives its output alone, and its status, and refuses where no shell
// waits.
func TestRun(t *testing.T) {
	h := newHost(t)
	h.Start()
	marks := `exec env HISTFILE= PS0='\[\e]133;C\a\]' ` +
		`PROMPT_COMMAND='printf "\033]133;D;%s\007" "$?"' PS1='\[\e]133;A\a\]$ \[\e]133;B\a\]' bash --norc --noprofile`
	for name, shell := range map[string]string{"plain": quiet, "marks": marks} {
		driven(t, h, name, shell)
		for _, test := range []struct {
			line, want string
			status     int
		}{
			{"echo one; echo two", "one\ntwo\n", 0},
			{"(exit 5)", "", 5},
			{`printf '\033]133;D;7\007'; sleep 0.2; echo behind`, "behind\n", 0},
			{"sh -c 'read x </dev/null; echo got $x'", "got\n", 0},
		} {
			if out, status := drive(t, h, "run", "--wait", name, test.line); out != test.want || status != test.status {
				t.Errorf("%s: %q gave %q and status %d, want %q and %d", name, test.line, out, status, test.want, test.status)
			}
		}
		out, _ := drive(t, h, "run", "--json --wait", name, "echo x; false")
		var got struct {
			Status int
			Output string
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil || got.Status != 1 || got.Output != "x\n" {
			t.Errorf("%s: %v, %q", name, err, out)
		}
		drive(t, h, "send", "--enter", name, "cat")
		drive(t, h, "wait", "--reading", name)
		if out, status := drive(t, h, "run", "", name, "echo no"); status != 255 || !strings.Contains(out, "no shell waits at a prompt") {
			t.Errorf("%s: while cat runs: %q, status %d", name, out, status)
		}
	}
}

// What is sent reaches a program once and whole: one that reads lines, one that takes a paste, and one that does not read.
func TestSend(t *testing.T) {
	h := newHost(t)
	h.Start()
	driven(t, h, "lines", "while read -r x; do echo \"got [$x]\"; done")
	for i := range 20 {
		drive(t, h, "send", "--enter", "lines", fmt.Sprintf("line %d", i))
	}
	drive(t, h, "wait", "--text got..line.19", "lines")
	out, _ := drive(t, h, "tail", "", "lines")
	if n := strings.Count(out, "got ["); n != 20 {
		t.Errorf("%d lines have come, want 20:\n%s", n, out)
	}

	driven(t, h, "busy", "stty -echo; sleep 1000")
	out, status := drive(t, h, "send", "--timeout 3s --enter", "busy", "abc")
	if status != 124 || !strings.Contains(out, "4 bytes are typed, and the program has not read them") {
		t.Errorf("a program that does not read: %q, status %d", out, status)
	}

	driven(t, h, "shell", quiet)
	drive(t, h, "wait", "--prompt", "shell")
	drive(t, h, "send", "--enter", "shell", "cat >/dev/null")
	drive(t, h, "wait", "--reading", "shell")
	drive(t, h, "send", "--key C-c", "shell")
	if out, status := drive(t, h, "wait", "--prompt --timeout 10s", "shell"); status != 0 || !strings.HasPrefix(out, "prompt") {
		t.Errorf("after Ctrl-C: %q, status %d", out, status)
	}
	if out, status := drive(t, h, "send", "", "shell"); status != 255 || !strings.Contains(out, "nothing to type") {
		t.Errorf("%q, status %d", out, status)
	}
}

// A secret is typed for a program that reads a password, and for no other; no client sees it.
func TestSendSecret(t *testing.T) {
	h := newHost(t)
	h.Start()
	driven(t, h, "login", "read -s x; echo; echo got ${#x}; read x")
	secret := func() (output string, status int) {
		cmd := h.Via(h.Addr, "send", []string{"--secret"}, "login")
		cmd.Stdin = strings.NewReader("hunter2\n")
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	drive(t, h, "wait", "--reading", "login")
	if out, status := secret(); status != 0 {
		t.Errorf("%q, status %d", out, status)
	}
	drive(t, h, "wait", "--text got.7", "login")
	drive(t, h, "wait", "--reading", "login")
	if out, status := secret(); status != 255 || !strings.Contains(out, "no program reads a password") {
		t.Errorf("a program that shows what it reads: %q, status %d", out, status)
	}
	if out, _ := drive(t, h, "tail", "", "login"); strings.Contains(out, "hunter2") {
		t.Errorf("the secret is in the output: %q", out)
	}
}

// Each condition is told when it holds, and not before.
func TestWait(t *testing.T) {
	h := newHost(t)
	h.Start()
	driven(t, h, "w", quiet)
	drive(t, h, "wait", "--prompt", "w")
	for _, test := range []struct {
		line string
		wait string
		want string
	}{
		{"echo; echo a needle here", "--text ne+dle", "text: row [0-9]+, output [0-9]+: needle"},
		{"seq 1 20000", "--text ^19999$", "text: .*: 19999"}, // which scrolls by
		{"clear", "--no-text needle", "no-text: "},
		{"sleep 0.3", "--stable 500ms", "stable: "},
		{"sleep 0.3; printf '\\a'", "--bell", "bell: "},
		{"sleep 0.3; printf '\\033]9;done it\\007'", "--notify", "notify: .*: done it"},
		{"read x", "--reading", "reading: "},
		{"\n", "--prompt --text nothing", "prompt: "},
		{"exit 3", "--exit", "exit: status 3"},
	} {
		wait := h.Via(h.Addr, "wait", strings.Fields(test.wait+" --timeout 15s"), "w")
		out := new(rig.Output)
		wait.Stdout, wait.Stderr = out, out
		from := h.Log.Len()
		if err := wait.Start(); err != nil {
			t.Fatal(err)
		}
		h.Log.Await(t, from, regexp.MustCompile("client attached.*role=share"))
		drive(t, h, "send", "--enter", "w", test.line)
		if err := wait.Wait(); err != nil {
			t.Errorf("%q, waiting for %q: %v, %s", test.line, test.wait, err, out)
		} else if !regexp.MustCompile("^" + test.want).MatchString(out.String()) {
			t.Errorf("%q, waiting for %q: %q, want %q", test.line, test.wait, out, test.want)
		}
	}
	driven(t, h, "w2", quiet)
	if out, status := drive(t, h, "wait", "--text never --timeout 200ms", "w2"); status != 124 {
		t.Errorf("%q, status %d", out, status)
	}
}

// Output that is read by offsets is read once, over several readers.
func TestTail(t *testing.T) {
	h := newHost(t)
	h.Start()
	driven(t, h, "t", "seq 1 5000; read x; seq 5001 10000; read x")
	drive(t, h, "wait", "--reading", "t")
	var text strings.Builder
	next := uint64(0)
	read := func() {
		out, status := drive(t, h, "tail", "--json --since "+fmt.Sprint(next), "t")
		if status != 0 {
			t.Fatalf("%q, status %d", out, status)
		}
		for lines := json.NewDecoder(strings.NewReader(out)); lines.More(); {
			var chunk struct {
				From, Next, Lost uint64
				Text             string
			}
			if err := lines.Decode(&chunk); err != nil || chunk.Lost != 0 {
				t.Fatalf("%v, %+v", err, chunk)
			}
			text.WriteString(chunk.Text)
			next = chunk.Next
		}
	}
	read()
	drive(t, h, "send", "--enter", "t", "")
	drive(t, h, "wait", "--text ^10000", "t")
	read()
	for i := 1; i <= 10000; i++ {
		if strings.Count(text.String(), fmt.Sprintf("\n%d\r", i)) != 1 && i > 1 {
			t.Fatalf("line %d has not come once", i)
		}
	}
}
