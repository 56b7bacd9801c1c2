//go:build linux || darwin

package rundir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	role, path, _ := strings.Cut(role, " ")
	var said []string
	switch role {
	case "fill":
		for _, make := range []func() error{
			func() error { return os.Mkdir("x", 0o700) },
			func() error { return os.WriteFile("x", nil, 0o600) },
			func() error { _, err := Listen("x"); return err },
		} {
			err := make()
			if errors.Is(err, fs.ErrPermission) {
				err = fs.ErrPermission
			}
			said = append(said, fmt.Sprint(err))
		}
		fmt.Println(strings.Join(said, ", "))
		return nil
	case "adopt":
		l, err := Adopt(os.NewFile(3, path), path)
		if err != nil {
			return err
		}
		defer l.Close()
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
func asStranger(t *testing.T, dir, role string, files ...*os.File) string {
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
	cmd.ExtraFiles = files
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
		dir, err := b.Make()
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
		if again, err := b.Make(); err != nil || again != dir {
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

// The directory that root makes for an account belongs to root: the account can enter it,
// and make nothing in it.
func TestMakeForAnother(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root makes directories for other accounts")
	}
	b := Base(filepath.Join(reachableDir(t), "run"))
	dir, err := b.MakeFor(stranger, stranger)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if stat := info.Sys().(*syscall.Stat_t); stat.Uid != 0 || stat.Gid != stranger || info.Mode() != fs.ModeDir|0o750 {
		t.Errorf("got %v of %d:%d; want a directory of root, 0750, with the account's group", info.Mode(), stat.Uid, stat.Gid)
	}
	if got := b.Dirs(stranger); !slices.Equal(got, []string{dir}) {
		t.Errorf("Dirs gives %v, want %s", got, dir)
	}
	if got := asStranger(t, dir, "fill"); got != "permission denied, permission denied, permission denied" {
		t.Errorf("the account fills the directory: %s", got)
	}
	if again, err := b.MakeFor(stranger, stranger); err != nil || again != dir {
		t.Errorf("once more: %s, %v", again, err)
	}
	// One that the account has made is not taken over.
	if err := errors.Join(os.Chown(dir, stranger, stranger), os.Chmod(dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	_, err = b.MakeFor(stranger, stranger)
	wantError(t, "of the account", err, "does not belong to user id 0")
	if info, err := os.Lstat(dir); err != nil || info.Mode() != fs.ModeDir|0o777 {
		t.Errorf("it is %v now, %v; want it left as it was", info.Mode(), err)
	}
}

// reachableDir returns a directory that other accounts can enter, with room for the name
// of a socket.
func reachableDir(t *testing.T) string {
	dir, err := os.MkdirTemp("", "qt")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// Root uses no directory that another account could replace.
func TestSystemDirectoryAtRisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only the directories of root are checked")
	}
	for _, test := range []struct {
		name  string
		apply func(above, run string) error
		want  string
	}{
		{"safe", func(above, run string) error { return nil }, ""},
		{"of an account", func(above, run string) error {
			return errors.Join(os.Mkdir(run, 0o755), os.Chown(run, stranger, 0))
		}, "does not belong to user id 0"},
		{"open to all", func(above, run string) error {
			return errors.Join(os.Mkdir(run, 0o755), os.Chmod(run, 0o777|fs.ModeSticky))
		}, "others may write to it"},
		{"link", func(above, run string) error {
			return errors.Join(os.Mkdir(run+".real", 0o755), os.Symlink(run+".real", run))
		}, "is not a directory"},
		{"dangling link", func(above, run string) error { return os.Symlink(run+".real", run) }, "is not a directory"},
		{"above it of an account", func(above, run string) error { return os.Chown(above, stranger, 0) }, "does not belong to root"},
		{"above it open to the group", func(above, run string) error { return os.Chmod(above, 0o775) }, "others may write to it"},
		{"above it open to all, sticky", func(above, run string) error { return os.Chmod(above, 0o777|fs.ModeSticky) }, ""},
		{"above it a link of an account", func(above, run string) error {
			return errors.Join(os.Rename(above, above+".real"), os.Symlink(above+".real", above), os.Lchown(above, stranger, 0))
		}, "does not belong to root"},
		{"above it a link to what is open to all", func(above, run string) error {
			return errors.Join(os.MkdirAll(above+".real/in", 0o755), os.Chmod(above+".real", 0o777), os.Remove(above),
				os.Symlink(above+".real/in", above))
		}, "others may write to it"},
	} {
		above := filepath.Join(t.TempDir(), "above")
		run := filepath.Join(above, "run")
		if err := errors.Join(os.Mkdir(above, 0o755), test.apply(above, run)); err != nil {
			t.Fatal(err)
		}
		err := Base(run).MakeSystem()
		if test.want == "" {
			if err != nil {
				t.Errorf("%s: %v", test.name, err)
			}
			continue
		}
		wantError(t, test.name, err, test.want)
		if _, err := os.Lstat(run + ".real/" + strconv.Itoa(stranger)); err == nil {
			t.Errorf("%s: something was made behind a link", test.name)
		}
	}
}

// A process removes names in directories of its own account only.
func TestOpen(t *testing.T) {
	b := Base(filepath.Join(t.TempDir(), "run"))
	dir, err := b.Make()
	if err != nil {
		t.Fatal(err)
	}
	root, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	root.Close()
	link := dir + ".link"
	if err := os.Symlink(filepath.Base(dir), link); err != nil {
		t.Fatal(err)
	}
	_, err = Open(link)
	wantError(t, "a link", err, "is a symbolic link")
	if err := os.Chmod(dir, 0o770); err != nil {
		t.Fatal(err)
	}
	_, err = Open(dir)
	wantError(t, "open to the group", err, "others may write to it")
	if os.Geteuid() == 0 {
		if err := errors.Join(os.Chmod(dir, 0o700), os.Chown(dir, stranger, stranger)); err != nil {
			t.Fatal(err)
		}
		_, err = Open(dir)
		wantError(t, "of another account", err, "does not belong to")
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
			_, err := b.Make()
			wantError(t, "Make", err, test.want)
			wantError(t, "Make", err, dir)
			if got := b.Dirs(me()); len(got) != 0 {
				t.Errorf("Dirs gives %v, want nothing", got)
			}
			if err := b.Unsafe(me()); test.name != "of another" {
				wantError(t, "Unsafe", err, test.want)
			} else if err != nil {
				t.Errorf("Unsafe: %v, although the account has nothing there", err)
			}
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
	_, err := Base(file).Make()
	wantError(t, "Make", err, "not a directory")
}
