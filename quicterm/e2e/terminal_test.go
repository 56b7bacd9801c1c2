//go:build linux || darwin

package e2e

import (
	"syscall"
	"testing"

	"github.com/creack/pty"
)

func TestTerminal(t *testing.T) {
	h := newHost(t)
	h.start()
	x := h.shell(h.addr)
	x.run("echo he''llo", "hello")
	x.run("tty", "/dev/(pts/|tty)")
	x.run("stty size", "24 80")
	x.run(`echo "$TERM $LC_TEST"`, "xterm carried over")
	if err := pty.Setsize(x.tty, &pty.Winsize{Cols: 100, Rows: 30}); err != nil {
		t.Fatal(err)
	}
	x.run("until stty size | grep '30 100'; do :; done", "30 100")
	x.send("sh -c 'echo run''ning; exec cat'\r")
	x.expect("running")
	x.send("\x03")
	x.expect(`\^C`)
	x.run("echo st''atus $?", "status 130")
	x.run("printf '\\303\\244\\342\\202\\254\\n'", "ä€")
	x.send("exit 5\r")
	if got := x.exit(); got != 5 {
		t.Errorf("exit status %d, want 5", got)
	}
}

func TestEscapes(t *testing.T) {
	h := newHost(t)
	h.start()
	x := h.shell(h.addr, "-s", "work")
	x.send("~?")
	x.expect("end the session")
	x.send("\r~s")
	x.expect("session work: live since")
	x.send("\r")
	x.run("echo ti~lde", "ti~lde")
	x.send("~~ 2>&1\r")
	x.expect("~ 2>&1\r\n")
	x.expect(`\$ `)
	x.send("~d")
	x.expect("detached: qt attach 127.0.0.1 work comes back")
	if got := x.exit(); got != 0 {
		t.Errorf("exit status after detaching: %d, want 0", got)
	}
	x = open(t, h.qt("attach", "work"))
	x.expect("carried|ti~lde")
	x.run("echo ba''ck", "back")
	x.send("~.")
	if got := x.exit(); got != 128+int(syscall.SIGHUP) {
		t.Errorf("exit status after ending the session: %d, want 129", got)
	}
}
