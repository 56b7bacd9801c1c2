//go:build linux

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
)

// quiet is a shell without marks, whose prompt is known.
const quiet = "exec env PS1='$ ' HISTFILE= bash --norc --noprofile"

// marking is a shell with marks.
const marking = `exec env HISTFILE= PS0='\[\e]133;C\a\]' ` +
	`PROMPT_COMMAND='printf "\033]133;D;%s\007" "$?"' PS1='\[\e]133;A\a\]$ \[\e]133;B\a\]' bash --norc --noprofile`

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
	for name, shell := range map[string]string{"plain": quiet, "marks": marking} {
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

// The time of a command that nobody reads the output of ends it too.
func TestRunBlocked(t *testing.T) {
	h := newHost(t)
	h.Start()
	driven(t, h, "r", quiet)
	for _, verb := range [][]string{{"run", "--wait", "r", "yes"}, {"tail", "-f", "r"}} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd := h.Via(h.Addr, verb[0], []string{"--timeout", "3s", verb[1]}, verb[2:]...)
		cmd.Stdout = w
		err = cmd.Run()
		if got := cmd.ProcessState.ExitCode(); got != 124 {
			t.Errorf("%q: %v", verb, err)
		}
		w.Close()
		r.Close()
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

// A command line or input with the id of one that was typed before gives the answer of that, and types nothing: to a
// process whose predecessor was killed before it had the answer, and after other commands too.
func TestAgain(t *testing.T) {
	h := newHost(t)
	h.Start()
	for name, shell := range map[string]string{"plain": quiet, "marks": marking} {
		driven(t, h, name, shell)
		const line = `n=$((n+1)); echo time $n; (exit $n)`
		for range 3 {
			out, status := drive(t, h, "run", "--wait --id first", name, line)
			if out, _, _ = strings.Cut(out, "qt: this was typed before"); out != "time 1\n" || status != 1 {
				t.Errorf("%s: %q, status %d", name, out, status)
			}
			drive(t, h, "run", "--wait", name, "echo another")
		}
		if out, status := drive(t, h, "run", "--wait --id second", name, line); out != "time 2\n" || status != 2 {
			t.Errorf("%s: the second time: %q, status %d", name, out, status)
		}
		drive(t, h, "run", "--wait --timeout 1s --id slow", name, "sleep 3; echo slow")
		if out, status := drive(t, h, "run", "--id slow", name, "sleep 3; echo slow"); !strings.HasPrefix(out, "slow\nqt: ") || status != 0 {
			t.Errorf("%s: a command that still ran: %q, status %d", name, out, status)
		}
	}
	driven(t, h, "lines", "while read -r x; do echo \"got [$x]\"; done")
	for _, again := range []bool{false, true} {
		out, status := drive(t, h, "send", "--json --enter --id x", "lines", "text")
		var got struct {
			Bytes, Unread int
			Since         uint64
			Again         bool
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil || status != 0 || got.Bytes != 5 || got.Unread != 0 || got.Again != again {
			t.Errorf("%v, status %d, %q", err, status, out)
		}
	}
	drive(t, h, "send", "--enter", "lines", "end")
	drive(t, h, "wait", "--text got..end", "lines")
	if out, _ := drive(t, h, "tail", "", "lines"); strings.Count(out, "got [") != 2 {
		t.Errorf("lines are missing or doubled:\n%s", out)
	}
}

// Of two programs that run command lines at the same time, one waits for the other. What a person types is told to those
// that wait for what comes of their input.
func TestTwoDrivers(t *testing.T) {
	h := newHost(t)
	h.Start()
	driven(t, h, "shared", quiet)
	drive(t, h, "wait", "--prompt", "shared")
	var both sync.WaitGroup
	for i := range 4 {
		line := fmt.Sprintf("echo begin %d; sleep 0.2; echo end %[1]d", i)
		run := h.Via(h.Addr, "run", []string{"--wait"}, "shared", line)
		both.Go(func() {
			want := fmt.Sprintf("begin %d\nend %[1]d\n", i)
			if out, err := run.CombinedOutput(); string(out) != want || err != nil {
				t.Errorf("%q, %v, want %q", out, err, want)
			}
		})
	}
	both.Wait()
	person := rig.Open(t, h.Via(h.Addr, "attach", []string{"--share"}, "shared"))
	person.Expect("end")
	out, _ := drive(t, h, "send", "--json --enter", "shared", "read x")
	var sent struct{ Since uint64 }
	if err := json.Unmarshal([]byte(out), &sent); err != nil {
		t.Fatal(err)
	}
	drive(t, h, "wait", "--reading", "shared")
	person.TTY.WriteString("typed by hand\r")
	for _, since := range []string{"", fmt.Sprintf("--since %d ", sent.Since)} {
		out, status := drive(t, h, "wait", since+"--prompt --timeout 1m", "shared")
		if status != 0 || !strings.Contains(out, "@127.0.0.1 has typed too\n") {
			t.Errorf("%q: %q, status %d", since, out, status)
		}
	}
}

// A secret is typed for a program that reads a password, and for no other; no client sees it.
func TestSendSecret(t *testing.T) {
	h := newHost(t)
	h.Start()
	driven(t, h, "login", "read -s x; echo; echo got ${#x}; read x; read x")
	secret := func(flags ...string) (output string, status int) {
		cmd := h.Via(h.Addr, "send", append(flags, "--secret"), "login")
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
	if out, status := secret("--force"); status != 0 {
		t.Errorf("by force: %q, status %d", out, status)
	}
	if out, _ := drive(t, h, "tail", "", "login"); !strings.Contains(out, "hunter2") {
		t.Errorf("a secret that is typed by force is not in the output: %q", out)
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
		h.Log.Await(t, from, regexp.MustCompile("client attached.*role=(share|watch)"))
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
	plain, _ := drive(t, h, "tail", "--plain", "t")
	for i := 1; i <= 10000; i++ {
		if i > 1 && strings.Count(plain, fmt.Sprintf("\n%d\n", i)) != 1 {
			t.Fatalf("line %d is not once in the plain text", i)
		}
		if strings.Count(text.String(), fmt.Sprintf("\n%d\r", i)) != 1 && i > 1 {
			t.Fatalf("line %d has not come once", i)
		}
	}
}
