//go:build linux || darwin

package agent

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// strangerVar makes the test binary ask the agent at a path as another account.
const strangerVar = "QUICTERM_TEST_AGENT"

func TestMain(m *testing.M) {
	if path := os.Getenv(strangerVar); path != "" {
		const stranger = 65534
		err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(stranger), syscall.Setuid(stranger))
		var c net.Conn
		if err == nil {
			c, err = net.Dial("unix", path)
		}
		if err == nil {
			c.Write(request(requestIdentities, 1))
			var got []byte
			got, err = io.ReadAll(c)
			fmt.Printf("%x", got)
		}
		if err != nil && !errors.Is(err, syscall.ECONNRESET) {
			fmt.Print(err)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// The agent of a session is reached by one path, by its account alone, and itself reaches those that clients offer, also
// when they offer theirs again.
func TestSockets(t *testing.T) {
	dir, err := os.MkdirTemp("", "qt")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	base := rundir.Base(filepath.Join(dir, "run"))
	a, err := Listen(base, wire.SessionID{7})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		a.Serve()
		close(served)
	}()
	if info, err := os.Lstat(a.Path); err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("the socket is %v, %v", info.Mode(), err)
	}
	ask := func(why string, want []byte) {
		t.Helper()
		c, err := net.Dial("unix", a.Path)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.Write(request(requestIdentities, 1))
		got := make([]byte, len(want))
		if _, err := io.ReadFull(c, got); err != nil || string(got) != string(want) {
			t.Errorf("%s: %x, %v; want %x", why, got, err, want)
		}
	}
	id := wire.AgentID{8}
	offer := func(number byte) net.Listener {
		t.Helper()
		l, err := ListenFor(base, id)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				c, err := l.Accept()
				if errors.Is(err, net.ErrClosed) {
					return
				}
				if err == nil {
					c.Write([]byte{0, 0, 0, 1, number})
				}
			}
		}()
		return l
	}
	a.Offer(id)
	ask("nobody listens", noKeys)
	before := offer(1)
	ask("one offers", []byte{0, 0, 0, 1, 1})
	again := offer(2) // before the first is known to have gone
	before.Close()
	ask("it offers again", []byte{0, 0, 0, 1, 2})
	dead, err := rundir.Listen(filepath.Join(filepath.Dir(a.Path), "killed.offer"))
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	dead.Close()
	other, err := Listen(base, wire.SessionID{9})
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Dir(a.Path)); err != nil || len(left) != 3 {
		t.Errorf("beside one that was killed, there are %v, %v", left, err)
	}
	other.Close()
	ask("as before", []byte{0, 0, 0, 1, 2})
	again.Close()
	ask("it is gone", noKeys)
	a.Offer(wire.AgentID{})
	ask("nothing is offered", noKeys)
	if os.Geteuid() == 0 {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		for path, mode := range map[string]fs.FileMode{dir: 0o711, filepath.Dir(filepath.Dir(a.Path)): 0o711, filepath.Dir(a.Path): 0o711, a.Path: 0o666} {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), strangerVar+"="+a.Path)
		if got, err := cmd.CombinedOutput(); err != nil || len(got) > 0 {
			t.Errorf("another account gets %q, %v", got, err)
		}
	}
	a.Close()
	<-served
	if left, err := os.ReadDir(filepath.Dir(a.Path)); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// Only a process that knows the id reaches a client's agent, and only as itself; others do not hold it up, and the directory
// does not show the id.
func TestProof(t *testing.T) {
	dir, err := os.MkdirTemp("", "qt")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	id := wire.AgentID([]byte("sixteen letters."))
	l, err := ListenFor(rundir.Base(filepath.Join(dir, "run")), id)
	if err != nil {
		t.Fatal(err)
	}
	path := l.Addr().String()
	if name := filepath.Base(path); strings.Contains(name, hex.EncodeToString(id[:4])) || len(name) > 40 {
		t.Errorf("the socket is called %s", name)
	}
	dial := func(first []byte) net.Conn {
		t.Helper()
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(10 * proofTime))
		c.Write(first)
		return c
	}
	wantEnd := func(why string, c net.Conn) {
		t.Helper()
		if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil || os.IsTimeout(err) {
			t.Errorf("%s: %d bytes, %v", why, n, err)
		}
	}
	mine := proof(id, os.Getpid())
	var silent []net.Conn
	for range maxUnproven - 1 {
		silent = append(silent, dial(nil))
	}
	for why, first := range map[string][]byte{
		"as another process": append(proof(id, os.Getppid()), mine...), "with another id": append(proof(wire.AgentID{1}, os.Getpid()), mine...),
		"with the id": append(id[:], mine...), "with a request": append(request(requestIdentities, 1), mine...),
	} {
		c := dial(first)
		wantEnd(why, c)
		c.Close()
	}
	known := dial(append(mine, "first"...))
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len("first"))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != "first" {
		t.Errorf("what proves that it knows the id sends %q, %v", got, err)
	}

	// When all places are taken, it waits for those that are silent to end.
	silent = append(silent, dial(nil))
	late := dial(mine)
	if c, err := l.Accept(); err != nil {
		t.Error(err)
	} else {
		c.Close()
	}
	late.Close()
	for _, c := range silent {
		wantEnd("silent", c)
		c.Close()
	}
	waiting := dial(nil)
	l.Close()
	wantEnd("when it closes", waiting)
	if c, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after the end it accepts %v, %v", c, err)
	}
	known.Write([]byte("later"))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != "later" {
		t.Errorf("after the end comes %q, %v", got, err)
	}
	known.Close()
	c.Close()
}
