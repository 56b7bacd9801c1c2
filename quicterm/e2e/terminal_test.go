//go:build linux || darwin

package e2e

import (
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

// The escapes ~? ~s ~~ ~d ~. at the start of a line, and none elsewhere.
func TestEscapes(t *testing.T) {
	h := newHost(t)
	h.Start()
	x := h.Shell(h.Addr, "-s", "work")
	x.Send("~?")
	x.Expect("end the session")
	x.Send("\r")
	awaitLive(x, "work")
	x.Send("\r")
	x.Run("echo ti~lde", "ti~lde")
	x.Send("~~ 2>&1\r")
	x.Expect("~ 2>&1\r\n")
	x.Expect(`\$ `)
	x.Send("~d")
	x.Expect("detached; resume with: qt attach .* 127.0.0.1 work\r\n")
	if got := x.Exit(); got != 0 {
		t.Errorf("exit status after detaching: %d, want 0", got)
	}
	x = rig.Open(t, h.QT("attach", "work"))
	x.Expect("carried|ti~lde")
	x.Run("echo ba''ck", "back")
	x.Send("~.")
	if got := x.Exit(); got != 128+int(syscall.SIGHUP) {
		t.Errorf("exit status after ending the session: %d, want 129", got)
	}
}

// awaitLive types ~s until it says that the session is live: on a busy machine the server may be late.
func awaitLive(x *rig.Terminal, session string) {
	x.T.Helper()
	for until := time.Now().Add(rig.Patience); ; time.Sleep(50 * time.Millisecond) {
		x.Send("~s")
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
	h.Shell(h.Addr, "-s", "work").Send("~d")
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
