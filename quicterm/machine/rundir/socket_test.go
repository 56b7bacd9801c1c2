//go:build linux || darwin

package rundir

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// accept returns the accepted end of the next connection.
func accept(t *testing.T, l *net.UnixListener) *net.UnixConn {
	t.Helper()
	c, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func wantPeer(t *testing.T, why string, c *net.UnixConn, want uint32) {
	t.Helper()
	if uid, err := PeerUID(c); err != nil || uid != want {
		t.Errorf("%s: peer is user id %d, %v; want %d", why, uid, err, want)
	}
}

func TestListenAndDial(t *testing.T) {
	t.Chdir(t.TempDir()) // so that names fit a socket address
	l, err := Listen("s")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat("s"); err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("the socket is %v, %v; want it for its owner only", info.Mode(), err)
	}
	c, err := Dial("s", me())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	wantPeer(t, "who dialled", accept(t, l), me())
	wantPeer(t, "who listens", c, me())
	c.Close()
	if uid, err := PeerUID(c); err == nil {
		t.Errorf("of a closed connection: got user id %d, want an error", uid)
	}
	if _, err := Listen("s"); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("listening twice: got %v, want %v", err, syscall.EADDRINUSE)
	}
	if _, err := Dial("s", me()); err != nil {
		t.Errorf("after the second try to listen: %v", err)
	}
	l.Close()
	if _, err := os.Lstat("s"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("closed: got %v, want the socket removed", err)
	}
	if _, err := Dial("s", me()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no socket: got %v, want %v", err, fs.ErrNotExist)
	}
}

// The system would truncate longer names, or refuse them with an unclear error.
func TestNameLength(t *testing.T) {
	t.Chdir(t.TempDir())
	longest := strings.Repeat("x", maxPath)
	l, err := Listen(longest)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := Dial(longest, me())
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	_, err = Listen(longest + "x")
	wantError(t, "Listen", err, "104 bytes long, at most 103")
	_, err = Dial(longest+"x", me())
	wantError(t, "Dial", err, "104 bytes long, at most 103")
}

// A stranger cannot connect to a socket. If it can, its user id is known.
func TestStrangerDials(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	l, err := Listen("s")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if said := asStranger(t, dir, "dial"); !strings.Contains(said, "permission denied") {
		t.Errorf("a stranger dialled and says %q, want permission denied", said)
	}
	if err := os.Chmod("s", 0o666); err != nil {
		t.Fatal(err)
	}
	if said := asStranger(t, dir, "dial"); !strings.Contains(said, "is served by user id 0, not") {
		t.Errorf("a stranger dialled and says %q, want that it does not believe even root", said)
	}
	wantPeer(t, "a stranger", accept(t, l), stranger)
}

// A socket on which a stranger listens is refused.
func TestStrangerListens(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if said := asStranger(t, dir, "listen"); said != "ready" {
		t.Fatalf("a stranger listens and says %q", said)
	}
	_, err := Dial("s", me())
	wantError(t, "Dial", err, "is served by user id 65534, not 0")
	c, err := Dial("s", stranger)
	if err != nil {
		t.Fatalf("as the one that is expected: %v", err)
	}
	defer c.Close()
	wantPeer(t, "who listens", c, stranger)
}

// A socket that root has bound, and on which an account listens, is that account's for who
// dials, and only the account and root can.
func TestBindForAnother(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root binds sockets for other accounts")
	}
	b := Base(filepath.Join(reachableDir(t), "run"))
	dir, err := b.MakeFor(stranger, stranger)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s")
	f, err := Bind(path, stranger, stranger)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := Dial(path, stranger); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("before the account listens: %v, want %v", err, syscall.ECONNREFUSED)
	}
	if got := asStranger(t, dir, "adopt "+path, f); got != "ready" {
		t.Fatalf("the account listens: %s", got)
	}
	c, err := Dial(path, stranger)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	wantPeer(t, "who listens", c, stranger)
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	if stat := info.Sys().(*syscall.Stat_t); stat.Uid != stranger || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("the socket is %v of %d, want 0600 of the account", info.Mode(), stat.Uid)
	}
}
