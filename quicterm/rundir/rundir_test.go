//go:build linux || darwin

package rundir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// stranger is another user id than that of this process.
const stranger = 65534

// helperVar makes the test binary one end of a socket, as a stranger.
const helperVar = "QUICTERM_RUNDIR_HELPER"

func TestMain(m *testing.M) {
	if role := os.Getenv(helperVar); role != "" {
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(stranger), syscall.Setuid(stranger)); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		if err := helper(role); err != nil {
			fmt.Println(err)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// helper listens on or dials the socket s of its working directory, until its standard
// input ends.
func helper(role string) error {
	switch role {
	case "dial":
		c, err := Dial("s", stranger)
		if err != nil {
			return err
		}
		defer c.Close()
	case "listen":
		l, err := Listen("s")
		if err != nil {
			return err
		}
		defer l.Close()
	}
	fmt.Println("ready")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// asStranger runs a helper in a directory, and returns what it prints.
func asStranger(t *testing.T, dir, role string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can start a process as another user")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), helperVar+"="+role), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 1024)
	n, _ := out.Read(said)
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	return strings.TrimSpace(string(said[:n]))
}

// me is the user id of this process.
func me() uint32 { return uint32(os.Geteuid()) }

func wantError(t *testing.T, why string, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got %v, want %q", why, err, want)
	}
}

// The directory depends on the user id only.
func TestDirectories(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	t.Setenv("TMPDIR", t.TempDir())
	for _, test := range []struct {
		base Base
		want []string
	}{
		{"", []string{"/run/quicterm/1000", "/tmp/quicterm-1000"}},
		{"/base", []string{"/base/1000"}},
	} {
		if got := test.base.candidates(1000); !slices.Equal(got, test.want) {
			t.Errorf("base %q: got %v, want %v", test.base, got, test.want)
		}
	}
	// The longest name of a socket, with the largest user id.
	for _, dir := range Base("").candidates(1<<32 - 1) {
		if err := checkPath(filepath.Join(dir, strings.Repeat("x", 64))); err != nil {
			t.Error(err)
		}
	}
}

// Whatever the umask, every account can pass the system's directory, and only the account
// can enter its own.
func TestMake(t *testing.T) {
	for _, umask := range []int{0, 0o022, 0o077} {
		b := Base(filepath.Join(t.TempDir(), "new"))
		old := syscall.Umask(umask)
		dir, err := b.Make(me())
		syscall.Umask(old)
		if err != nil {
			t.Errorf("umask %04o: %v", umask, err)
			continue
		}
		if want := filepath.Join(b.System(), strconv.Itoa(os.Geteuid())); dir != want {
			t.Errorf("got %s, want %s", dir, want)
		}
		for name, want := range map[string]fs.FileMode{b.System(): 0o755, dir: 0o700} {
			if info, err := os.Lstat(name); err != nil || info.Mode() != fs.ModeDir|want {
				t.Errorf("umask %04o: %s has mode %v, %v; want %04o", umask, filepath.Base(name), info.Mode(), err, want)
			}
		}
		if again, err := b.Make(me()); err != nil || again != dir {
			t.Errorf("once more: got %s, %v; want %s", again, err, dir)
		}
		if got := b.Dirs(me()); !slices.Equal(got, []string{dir}) {
			t.Errorf("Dirs gives %v, want %s", got, dir)
		}
		if got := b.Dirs(me() + 1); len(got) != 0 {
			t.Errorf("Dirs of another gives %v, want nothing", got)
		}
		if err := errors.Join(b.Unsafe(me()), b.Unsafe(me()+1)); err != nil {
			t.Errorf("Unsafe: %v", err)
		}
	}
}

func TestMakeForAnother(t *testing.T) {
	b := Base(t.TempDir())
	dir, err := b.Make(stranger)
	if os.Geteuid() != 0 {
		wantError(t, "not as root", err, "does not belong to user id 65534")
		if got := b.Dirs(stranger); len(got) != 0 {
			t.Errorf("Dirs gives %v, want nothing", got)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(dir)
	if err != nil || info.Sys().(*syscall.Stat_t).Uid != stranger || info.Mode() != fs.ModeDir|0o700 {
		t.Errorf("got %+v, %v; want a directory of the account, 0700", info, err)
	}
}

// Anything else in the place of the directory is refused and left unchanged.
func TestUnsafe(t *testing.T) {
	for _, test := range []struct {
		name string
		put  func(dir string) error
		want string
	}{
		{"file", func(dir string) error { return os.WriteFile(dir, nil, 0o700) }, "is not a directory"},
		{"link to a safe directory", func(dir string) error {
			return errors.Join(os.Mkdir(dir+".real", 0o700), os.Symlink(dir+".real", dir))
		}, "is not a directory"},
		{"dangling link", func(dir string) error { return os.Symlink(dir+".real", dir) }, "is not a directory"},
		{"pipe", func(dir string) error { return syscall.Mkfifo(dir, 0o700) }, "is not a directory"},
		{"open to the group", func(dir string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o750)) }, "has mode 0750"},
		{"open to all", func(dir string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o701)) }, "has mode 0701"},
		{"closed", func(dir string) error { return os.Mkdir(dir, 0o500) }, "has mode 0500"},
		{"of another", func(dir string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, stranger, stranger))
		}, "does not belong to"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := Base(t.TempDir())
			dir := b.candidates(me())[0]
			if err := test.put(dir); os.Geteuid() != 0 && errors.Is(err, fs.ErrPermission) {
				t.Skip("only root can give a directory away")
			} else if err != nil {
				t.Fatal(err)
			}
			before, _ := os.Lstat(dir)
			_, err := b.Make(me())
			wantError(t, "Make", err, test.want)
			wantError(t, "Make", err, dir)
			if got := b.Dirs(me()); len(got) != 0 {
				t.Errorf("Dirs gives %v, want nothing", got)
			}
			wantError(t, "Unsafe", b.Unsafe(me()), test.want)
			if after, err := os.Lstat(dir); err != nil || after.Mode() != before.Mode() || !os.SameFile(before, after) {
				t.Errorf("it is %v now, %v; want it left as it was", after, err)
			}
		})
	}
}

// The base itself must be a directory.
func TestBaseIsFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Base(file).Make(me())
	wantError(t, "Make", err, "not a directory")
}

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
