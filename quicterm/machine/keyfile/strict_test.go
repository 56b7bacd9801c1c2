//go:build linux || darwin

package keyfile

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/quicterm/quicterm/quicterm/machine/account"
)

// home gives an account a new home directory, which belongs to it.
func home(t *testing.T, a *account.Account) {
	t.Helper()
	a.Home = t.TempDir()
	put(t, a, ".", 0o700)
}

// put makes a file of the account or, without a content, gives it the existing one.
func put(t *testing.T, a *account.Account, name string, mode fs.FileMode, content ...string) string {
	t.Helper()
	path := filepath.Join(a.Home, name)
	if len(content) > 0 {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content[0]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Chmod(path, mode), os.Chown(path, int(a.UID), int(a.GID))); err != nil {
		t.Fatal(err)
	}
	return path
}

func current(t *testing.T) *account.Account {
	t.Helper()
	a := &account.Account{Name: "me", UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	home(t, a)
	return a
}

// wantFile checks that an account can read a file.
func wantFile(t *testing.T, a *account.Account, name, want string) {
	t.Helper()
	if b, err := readStrict(name, a.UID, a.Home); err != nil || string(b) != want {
		t.Errorf("%s: got %.40q, %v; want %.40q", filepath.Base(name), b, err, want)
	}
}

// wantRefusal checks that an account cannot read a file, for a reason.
func wantRefusal(t *testing.T, a *account.Account, name, why string) {
	t.Helper()
	if b, err := readStrict(name, a.UID, a.Home); err == nil || b != nil || !strings.Contains(err.Error(), why) {
		t.Errorf("%s: got %.40q, %v; want %q", filepath.Base(name), b, err, why)
	}
}

func TestReadFile(t *testing.T) {
	a := current(t)
	wantFile(t, a, put(t, a, "a", 0o600, "text"), "text")
	wantFile(t, a, put(t, a, "empty", 0o644, ""), "")
	wantFile(t, a, put(t, a, ".ssh/authorized_keys", 0o400, "key"), "key")
	whole := strings.Repeat("x", maxFile)
	wantFile(t, a, put(t, a, "whole", 0o600, whole), whole)
	wantRefusal(t, a, put(t, a, "larger", 0o600, whole+"x"), "larger than 1048576 bytes")
	if _, err := readStrict(filepath.Join(a.Home, "none"), a.UID, a.Home); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: got %v, want %v", err, fs.ErrNotExist)
	}
	if os.Geteuid() != 0 { // whom no mode keeps out
		wantRefusal(t, a, put(t, a, "closed", 0, "text"), "permission denied")
	}
}

// Files that are not regular make the reader neither wait nor read without end.
func TestReadIrregularFiles(t *testing.T) {
	a := current(t)
	fifo := filepath.Join(a.Home, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	wantRefusal(t, a, fifo, "not a regular file")
	wantRefusal(t, a, a.Home, "not a regular file")
	wantRefusal(t, a, "/dev/zero", "not a regular file")
	wantRefusal(t, a, "/dev/tty", "")
	t.Chdir(a.Home) // so that the name fits a socket address
	l, err := net.Listen("unix", "socket")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	wantRefusal(t, a, filepath.Join(a.Home, "socket"), "")
	link := filepath.Join(a.Home, "link")
	if err := os.Symlink(fifo, link); err != nil {
		t.Fatal(err)
	}
	wantRefusal(t, a, link, "not a regular file")
}

// A symbolic link is followed, as sshd does: the checks are of its target.
func TestReadLink(t *testing.T) {
	a := current(t)
	put(t, a, "safe/file", 0o600, "text")
	put(t, a, "open/file", 0o600, "text")
	put(t, a, "open", 0o777)
	for link, to := range map[string]string{
		"relative": "safe/file", "absolute": filepath.Join(a.Home, "safe/file"), "twice": "relative",
		"dir": "safe", "to_open": "open/file", "dangling": "none", "loop": "loop",
	} {
		if err := os.Symlink(to, filepath.Join(a.Home, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"relative", "absolute", "twice", "dir/file"} {
		wantFile(t, a, filepath.Join(a.Home, name), "text")
	}
	wantRefusal(t, a, filepath.Join(a.Home, "to_open"), "others may write")
	wantRefusal(t, a, filepath.Join(a.Home, "dangling"), "no such file")
	wantRefusal(t, a, filepath.Join(a.Home, "loop"), "too many links")
	real := a.Home
	a.Home = filepath.Join(t.TempDir(), "home")
	if err := os.Symlink(real, a.Home); err != nil {
		t.Fatal(err)
	}
	wantFile(t, a, filepath.Join(a.Home, "safe/file"), "text")
}

// A file that other accounts can change or replace is refused.
func TestReadFileThatOthersMayWrite(t *testing.T) {
	a := current(t)
	for _, test := range []struct {
		name      string
		file, dir fs.FileMode
		want      string
	}{
		{"all_read", 0o644, 0o755, ""},
		{"group_writes", 0o620, 0o700, "others may write"},
		{"all_write", 0o602, 0o700, "others may write"},
		{"group_writes_dir", 0o600, 0o770, "others may write"},
		{"all_write_dir", 0o600, 0o707, "others may write"},
		{"sticky_dir", 0o600, 0o777 | fs.ModeSticky, ""},
		{"sticky_file", 0o622 | fs.ModeSticky, 0o700, "others may write"},
	} {
		file := put(t, a, test.name+"/below/file", test.file, "text")
		put(t, a, test.name, test.dir)
		if test.want == "" {
			wantFile(t, a, file, "text")
		} else {
			wantRefusal(t, a, file, test.want)
			// Directories above the account's home are not checked.
			b := *a
			b.Home = filepath.Dir(file)
			if test.file&0o022 == 0 {
				wantFile(t, &b, file, "text")
			}
		}
	}
}
