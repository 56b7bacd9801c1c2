//go:build linux || darwin

package e2e

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/quicterm/quicterm/bench/rig"
)

// A shell on a terminal: size, environment, signals, UTF-8, exit status.
func TestTerminal(t *testing.T) {
	h := newHost(t)
	h.Start()
	x := h.Shell(h.Addr)
	x.Run("echo he''llo", "hello")
	x.Run("tty", "/dev/(pts/|tty)")
	x.Run("stty size", "24 80")
	x.Run(`echo "$TERM $LC_NAME"`, "xterm carried over")
	if err := pty.Setsize(x.TTY, &pty.Winsize{Cols: 100, Rows: 30}); err != nil {
		t.Fatal(err)
	}
	x.Run("until stty size | grep '30 100'; do :; done", "30 100")
	x.Send("sh -c 'echo run''ning; exec cat'\r")
	x.Expect("running")
	x.Send("\x03")
	x.Expect(`\^C[^$]*\$ `) // before that, cat may still read
	x.Run("echo st''atus $?", "status 130")
	x.Run("printf '\\303\\244\\342\\202\\254\\n'", "ä€")
	x.Send("exit 5\r")
	if got := x.Exit(); got != 5 {
		t.Errorf("exit status %d, want 5", got)
	}
}

// The escapes ~? ~# ~~ ~. at the start of a line, and none elsewhere.
func TestEscapes(t *testing.T) {
	h := newHost(t)
	h.Start()
	x := h.Shell(h.Addr, "-s", "work")
	x.Send("~?")
	x.Expect("the session continues")
	x.Send("\r")
	awaitLive(x, "work")
	x.Send("\r")
	x.Run("echo ti~lde", "ti~lde")
	x.Send("~~ 2>&1\r")
	x.Expect("~ 2>&1\r\n")
	x.Expect(`\$ `)
	x.Send("~.")
	end := x.Expect("qt: left; qt attach .* 127.0.0.1 work resumes, qt (kill .* 127.0.0.1 work) ends it\r\n")[1]
	if got := x.Exit(); got != 0 {
		t.Errorf("exit status after leaving: %d, want 0", got)
	}
	x = rig.Open(t, h.QT("attach", "work"))
	x.Expect("carried|ti~lde")
	x.Run("echo ba''ck", "back")
	x.Send("cat\r~.") // also from within a program
	x.Expect("qt: left; ")
	x.Exit()
	kill := h.QT("kill")
	kill.Args = append(kill.Args[:1], strings.Fields(end)...) // as pasted
	if out, err := kill.CombinedOutput(); err != nil {
		t.Errorf("qt %s: %v\n%s", end, err, out)
	}
	if out, _ := h.QT("ls").CombinedOutput(); strings.Contains(string(out), "work") {
		t.Errorf("a session that was ended is listed:\n%s", out)
	}
}

// What follows a tilde and is no escape reaches the program with it. -e changes the escape character, or
// leaves none.
func TestEscapeCharacter(t *testing.T) {
	h := newHost(t)
	h.Start()
	x := h.Shell(h.Addr, "-s", "work")
	x.Send("cat >" + h.Path("typed") + "\r")
	for _, line := range []string{"~david/", "~", "~x~.", "~/bin"} {
		for i := range line {
			x.Send(line[i : i+1])
		}
		x.Send("\r~~" + line + "\r")
	}
	x.Send("\x04")
	x.Run("echo al''l", "all")
	if got, want := h.Read("typed"), "~david/\n~~david/\n~\n~~\n~x~.\n~~x~.\n~/bin\n~~/bin\n"; got != want {
		t.Errorf("cat has read %q, want %q", got, want)
	}
	x.Send("\r~.")
	x.Expect("qt: left; ")
	x.Exit()
	x = rig.Open(t, h.Via(h.Addr, "attach", []string{"-e", "%"}, "work"))
	x.Run("echo on''ce", "once")
	x.Send("~.\r")
	x.Expect("not found")
	x.Send("%.")
	x.Expect("qt: left; qt attach -e % .* 127.0.0.1 work resumes, ")
	x.Exit()
	x = rig.Open(t, h.Via(h.Addr, "attach", []string{"-e", "none"}, "work"))
	x.Run("echo tw''ice", "twice")
	x.Send("~.\r")
	x.Expect("not found")
}

// awaitLive types ~# until it says that the session is live: on a busy machine the server may be late.
func awaitLive(x *rig.Terminal, session string) {
	x.T.Helper()
	for until := time.Now().Add(rig.Patience); ; time.Sleep(50 * time.Millisecond) {
		x.Send("~#")
		state := x.Expect("session " + session + ": ([a-z]+) since")[1]
		if state == "live" {
			return
		}
		if time.Now().After(until) {
			x.T.Fatalf("the session is %s", state)
		}
	}
}

// A signal that ends the client restores the terminal, and the session continues.
func TestEndedBySignal(t *testing.T) {
	h := newHost(t)
	h.Start()
	x := h.Shell(h.Addr, "-s", "work")
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP} {
		x.Run("echo al''ive", "alive")
		if err := x.Cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		// \r\n: the terminal translates \n again.
		x.Expect("qt: ended by SIG[A-Z]+; the session continues, resume with: qt attach .* 127.0.0.1 work\r\n")
		if got := x.Exit(); got != 128+int(sig) {
			t.Errorf("%v: exit status %d, want %d", sig, got, 128+int(sig))
		}
		x = rig.Open(t, h.QT("attach", "work"))
	}
}

// When the terminal disappears, the client exits and sends no input, not even ^D.
func TestTerminalLost(t *testing.T) {
	h := newHost(t)
	h.Start()
	h.Shell(h.Addr, "-s", "work").Send("~.")
	for range 5 {
		cmd := h.QT("attach", "work")
		tty, err := pty.Start(cmd)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tty.Read(make([]byte, 100)); err != nil { // so that no read is pending at Close
			t.Error(err)
		}
		tty.Close()
		timer := time.AfterFunc(rig.Patience, func() { cmd.Process.Kill() })
		cmd.Wait()
		if !timer.Stop() {
			t.Fatal("the client still runs without a terminal")
		}
	}
	x := rig.Open(t, h.QT("attach", "work"))
	x.Run("echo al''ive", "alive")
}
