//go:build linux || darwin

package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/term"

	"github.com/quicterm/quicterm/bench/rig"
)

// A client that ~^Z or SIGSTOP has stopped leaves the terminal to the shell, which gets usual modes from
// ~^Z. After fg the mode is set again, and the screen is drawn anew. Until then, qt status and completion
// do not wait for it, and it is named.
func TestSuspend(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	h := newHost(t)
	h.Start()
	client := h.Via(h.Addr, "connect", []string{"-t", "-s", "work"}, "exec env PS1='$ ' HISTFILE= sh")
	shell := exec.Command(bash, "--norc", "--noprofile", "--noediting", "-i")
	shell.Env = append(client.Env, "PS1=local> ", "HISTFILE=")
	x := rig.Open(t, shell)
	x.Expect("local> ")
	var line []string
	for _, word := range client.Args {
		line = append(line, "'"+strings.ReplaceAll(word, "'", `'\''`)+"'")
	}
	x.Send(strings.Join(line, " ") + "\r")
	x.Expect(`\$ $`)
	raw := func(why string, want bool) {
		t.Helper()
		state, err := term.GetState(int(x.TTY.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := term.MakeRaw(int(x.TTY.Fd())); err != nil {
			t.Fatal(err)
		}
		after, err := term.GetState(int(x.TTY.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		term.Restore(int(x.TTY.Fd()), state)
		if got := fmt.Sprint(*after) == fmt.Sprint(*state); got != want {
			t.Errorf("%s: the terminal is raw: %v, want %v", why, got, want)
		}
	}
	raw("in the session", true)

	x.Send("echo fi''rst\r")
	x.Expect(`first\r\n\$ $`)
	x.Send("~\x1a")
	x.Expect(`Stopped[^\n]*\r\nlocal> $`)
	raw("after ~^Z", false)
	x.Send("jobs -p\r")
	pid, err := strconv.Atoi(x.Expect(`\n(\d+)\r\n`)[1])
	if err != nil {
		t.Fatal(err)
	}
	x.Expect("local> $")
	x.Send("fg\r")
	x.Expect(`echo fi''rst\r\nfirst\r\n\$ `) // all of the screen, not only what is new
	raw("after fg", true)
	x.Run("echo sec''ond", "second")

	syscall.Kill(pid, syscall.SIGSTOP)
	x.Expect(`Stopped[^\n]*\r\nlocal> $`)
	begun := time.Now()
	out, err := exec.Command(filepath.Join(bin, "qt"), "status").CombinedOutput()
	want := fmt.Sprintf("process %d, session work: stopped; fg", pid)
	if runtime.GOOS == "darwin" { // nothing tells the state of a process there
		want = fmt.Sprintf("process %d, session work: does not answer", pid)
	}
	if err != nil || !strings.Contains(string(out), want) {
		t.Errorf("qt status prints %s%v; want %q", out, err, want)
	}
	complete := h.QT("attach")
	complete.Args = []string{complete.Args[0], "__complete", "attach", "unknown.invalid", ""}
	if out, err := complete.CombinedOutput(); err != nil {
		t.Errorf("completion: %v\n%s", err, out)
	}
	if took := time.Since(begun); took > 1500*time.Millisecond {
		t.Errorf("qt status and completion took %v beside a client that is stopped", took)
	}
	x.Send("printf 'of the local ''shell'\r")
	x.Expect("of the local shell")
	x.Send("fg\r")
	x.Expect(`echo sec''ond\r\nsecond\r\n\$ `)
	raw("after SIGSTOP and fg", true)

	// A full-screen program keeps its screen and its modes; the shell gets neither.
	x.Send("printf '" + fullScreen + "'; cat\r")
	x.Expect(`\x1b\[10;10Hdrawn$`)
	x.Send("\r~\x1a")
	x.Expect(undone)
	x.Expect(`Stopped[^\n]*\r\nlocal> $`)
	x.Send("fg\r")
	for _, want := range []string{`\x1b\[\?1049h`, "drawn", `\x1b\[\?2004h`} {
		x.Read = strings.LastIndex(x.Out.String(), "fg\r\n")
		x.Expect(want)
	}
	x.Send("\x04")
	x.Send("printf '\\033c'; exit\r")
	x.Expect("local> ")
}
