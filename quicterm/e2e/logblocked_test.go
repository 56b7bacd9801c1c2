//go:build linux || darwin

package e2e

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
)

// The pipe that the daemon and its holders log to is full from the start, and nobody reads
// it: all work as ever.
func TestLogBlocked(t *testing.T) {
	h := newHost(t)
	h.Start() // writes the settings, and chooses the port
	h.Stop(syscall.SIGTERM)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	for _, size := range []int{4 << 10, 1} { // a write of some bytes needs room for all of them
		w.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		for err = nil; err == nil; {
			_, err = w.Write(make([]byte, size))
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
	}
	h.Daemon = exec.Command(filepath.Join(h.Bin, "qtd"), "serve", "--config", h.Path("qtd.toml"), "--listen", h.Addr.String())
	h.Daemon.Stderr = w // Fd makes it blocking
	if err := h.Daemon.Start(); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(rig.Patience); ; time.Sleep(10 * time.Millisecond) { // until it listens
		c, err := net.Dial("tcp", h.Addr.String())
		if err == nil {
			c.Close()
			break
		}
		if time.Now().After(until) {
			t.Fatal(err)
		}
	}
	x := h.Shell(h.Addr, "-s", "here")
	x.Run("echo on''e", "one")
	y := rig.Open(t, h.QT("attach", "here"))
	x.Expect("taken over by")
	y.Run("echo tw''o", "two")
	wantOutput(t, h.QT("connect", "cat; echo done"), "done\n")
	if out, err := h.QT("ls").CombinedOutput(); err != nil || !strings.Contains(string(out), "here") {
		t.Errorf("%v: %s", err, out)
	}
	y.Send("exit 3\r")
	if got := y.Exit(); got != 3 {
		t.Errorf("exit status %d, want 3", got)
	}
	h.Stop(syscall.SIGTERM) // ends although the log does not
}
