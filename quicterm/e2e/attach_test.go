//go:build linux || darwin

package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

// The client is killed: the session continues, and the next client gets all output since
// then.
func TestClientKilled(t *testing.T) {
	h := newHost(t)
	h.Start()
	x := h.Shell(h.Addr, "-s", "long")
	x.Run("cd "+h.Dir, "cd")
	x.Send("mkfifo go; echo fifo; read x < go; seq 10001 20000; echo the-''end\r")
	x.Expect("fifo\r\n")
	x.Cmd.Process.Kill()
	x.Cmd.Wait()
	y := rig.Open(t, h.QT("attach", "--replay", "raw", "long"))
	y.Expect("fifo\r\n")
	y.Cmd.Process.Kill()
	y.Cmd.Wait()
	if out, err := h.QT("connect", "echo > "+h.Path("go")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	z := rig.Open(t, h.QT("attach", "--replay", "raw", "long"))
	seen := z.Expect(`(?s)10001\r\n.*20000\r\nthe-end`)[0]
	for n := 10001; n <= 20000; n++ {
		line := fmt.Sprintf("%d\r\n", n)
		i := strings.Index(seen, line)
		if i < 0 {
			t.Fatalf("line %d is missing", n)
		}
		seen = seen[i+len(line):]
	}
	z.Send("exit\r")
	if got := z.Exit(); got != 0 {
		t.Errorf("exit status %d, want 0", got)
	}
}

// The terminal of a client that attaches gets the shell's marks with the screen, so that it can jump between prompts.
func TestMarksAfterAttach(t *testing.T) {
	h := newHost(t)
	h.Start()
	x := h.Shell(h.Addr, "-s", "work")
	x.Run(`printf '\033]133;A\007com''mand\n\033]133;C\007out''put\n\033]133;D;3\007'`, "output")
	y := rig.Open(t, h.QT("attach", "work"))
	y.Expect(`\x1b\]133;A\x1b\\command\r\n\x1b\]133;C\x1b\\output\r\n\x1b\]133;D;3\x1b\\`)
}

// A command ends while nobody is there: the title says so to who comes back.
func TestEndedWhileAway(t *testing.T) {
	h := newHost(t)
	h.Start()
	x := h.Shell(h.Addr, "-s", "work")
	x.Send("cd " + h.Dir + `; mkfifo go; printf '\033]133;B\007make te''st\n\033]133;C\007'; read x < go; ` +
		`printf '\033]133;D;2\007'; echo ov''er` + "\r")
	x.Expect("make test\r\n")
	x.Send("\r~.")
	x.Exit()
	if out, err := h.QT("connect", "echo > "+h.Path("go")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// A program that waits for it is nobody.
	if out, err := h.Via(h.Addr, "wait", []string{"--text", "over"}, "work").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	y := rig.Open(t, h.QT("attach", "work"))
	y.Expect(`\x1b\]2;qt: make test: exit 2, \d\d:\d\d\x1b`)
}

// Another client takes the session over: the first says which one, and exits.
func TestDisplaced(t *testing.T) {
	h := newHost(t)
	h.Start()
	x := h.Shell(h.Addr, "-s", "mine")
	y := rig.Open(t, h.QT("attach", "mine"))
	x.Expect("taken over by " + regexp.QuoteMeta(accountName(t)) + "@127.0.0.1")
	if got := x.Exit(); got != 255 {
		t.Errorf("exit status of the displaced client: %d, want 255", got)
	}
	y.Run("echo to you", "to you")
}

// A client that is displaced during an outage learns it afterwards. Its input of that
// time is dropped.
func TestDisplacedWhileAway(t *testing.T) {
	h := newHost(t)
	h.Start()
	p := h.Proxy(netem.Config{})
	x := h.Shell(p.Addr(), "-s", "mine")
	p.Set(netem.Config{Down: true})
	x.Send("dropped\r")
	y := rig.Open(t, h.QT("attach", "mine"))
	y.Run("echo to you", "to you")
	p.Set(netem.Config{})
	x.Expect("taken over by " + regexp.QuoteMeta(accountName(t)) + "@127.0.0.1")
	if got := x.Exit(); got != 255 {
		t.Errorf("exit status of the displaced client: %d, want 255", got)
	}
	y.Run("echo still me", "still me")
	if strings.Contains(y.Out.String(), "dropped") {
		t.Error("the session ran input of the displaced client")
	}
}
