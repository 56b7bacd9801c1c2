//go:build linux || darwin

package install

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// before is a login that runs a script and then the command.
func before(script string) []string { return []string{"sh", "-c", script + `; exec sh -c "$0"`} }

// mounted is a login with a file system of its own as its home.
func mounted(t *testing.T, options string) []string {
	t.Helper()
	login := []string{"unshare", "-rm", "sh", "-c", "mount -t tmpfs -o " + options + ` none "$HOME" && exec sh -c "$0"`}
	if os.Getuid() == 0 {
		login[1] = "-m"
	}
	if out, err := exec.Command(login[0], append(login[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("no mounts here: %v: %s", err, out)
	}
	return login
}

// On each bad host there is one clear error, and no file.
func TestBadHosts(t *testing.T) {
	tests := []struct {
		name    string
		login   []string
		mount   string
		tool    [2]string // a program that comes first in PATH, and its script
		prepare func(t *testing.T, a *account)
		want    string // the error; empty if there is none
	}{
		{name: "noisy", login: before(`seq 1 5000; printf '\033]2;title\007\033[2J%1000000s\n' x; echo noise >&2`)},
		{name: "noise without newline", login: before(`printf noise`)},
		{name: "full disk", mount: "size=64k", want: "the copy cannot be written: .*No space left on device"},
		{name: "no exec", mount: "noexec", want: "does not run there: .*Permission denied: .*noexec"},
		{name: "read-only home", mount: "ro", want: "no directory for qtd: .*Read-only file system"},
		{name: "no home", prepare: func(t *testing.T, a *account) { a.home += "/none" },
			want: `the account has no home directory there \(HOME is ".*/none"\)`},
		{name: "file in the way", prepare: func(t *testing.T, a *account) {
			os.WriteFile(filepath.Join(a.home, ".local"), nil, 0o600)
		}, want: "no directory for qtd: .*(Not a directory|File exists)"},
		{name: "directory in the way", prepare: func(t *testing.T, a *account) {
			os.MkdirAll(a.file(), 0o700)
		}, want: "no directory for qtd: .*/qtd is a directory"},
		{name: "other system", tool: [2]string{"uname", "echo Plan9 ../../etc"}, want: `does not run on the host's system, "plan9 ../../etc"`},
		{name: "cut off", tool: [2]string{"cat", "exec head -c 100"}, want: "cut off after 100 bytes"},
		{name: "changed on the way", tool: [2]string{"cat", "exec tr a b"}, want: "another checksum"},
		{name: "no checksums", tool: [2]string{"sha256sum", "exit 1"}, prepare: func(t *testing.T, a *account) {
			os.Symlink("sha256sum", filepath.Join(strings.Split(a.path, ":")[0], "shasum"))
		}},
		{name: "does not run", tool: [2]string{"chmod", `for f; do :; done; printf '\177ELF' >"$f"; exec /bin/chmod "$@"`},
			want: "does not run there: "},
		{name: "no sh", login: []string{"sh", "-c", "PATH=/none; eval $0"}, want: "finds no sh"},
		{name: "ssh fails", login: []string{"sh", "-c", "exit 255"}, want: "ssh could not log in"},
		{name: "no login", login: []string{"sh", "-c", "echo This account is closed.; exit 1"}, want: `does not run sh, but prints "This account is closed."`},
		{name: "silent end", login: []string{"true"}, want: "does not run sh, and ends with status 0"},
		{name: "echo", login: []string{"sh", "-c", "exec cat"}, want: "a forced command returns its input"},
		{name: "endless", login: []string{"sh", "-c", "exec yes"}, want: `prints without end, and does not run sh: "y"`},
		{name: "endless line", login: []string{"sh", "-c", "exec cat /dev/zero"}, want: `prints without end`},
		{name: "ended", tool: [2]string{"chmod", "kill $PPID"}, want: "the host ended the login before all was done"},
		{name: "hostile", login: []string{"sh", "-c", `echo 'quicterm-install failed \033[2J'; printf 'quicterm-install failed write \033[2J\033]2;x\007'`},
			want: `\[2J`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := newAccount(t)
			if test.tool[0] != "" {
				dir := t.TempDir()
				a.path = dir + ":" + a.path
				if err := os.WriteFile(filepath.Join(dir, test.tool[0]), []byte("#!/bin/sh\n"+test.tool[1]+"\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if test.prepare != nil {
				test.prepare(t, a)
			}
			a.login = test.login
			if test.mount != "" {
				a.login = mounted(t, test.mount)
			}
			r, err := a.put(t, fake("v1"))
			if test.want == "" {
				if err != nil || !r.Copied || r.Checked == (test.name == "no checksums") {
					t.Errorf("%+v, %v", r, err)
				}
				return
			}
			if err == nil {
				t.Fatalf("no error, want %q", test.want)
			}
			if !regexp.MustCompile(test.want).MatchString(err.Error()) || wire.Printable(err.Error(), 1000) != err.Error() {
				t.Errorf("%q, want %q", err, test.want)
			}
			if info, err := os.Lstat(a.file()); err == nil && !info.IsDir() {
				t.Error("there is a file")
			}
			if left, _ := filepath.Glob(filepath.Join(a.home, ".local/bin/.qtd.*")); left != nil {
				t.Errorf("left: %q", left)
			}
		})
	}
}

// A failed copy leaves the file that was there.
func TestFailureKeepsOld(t *testing.T) {
	a := newAccount(t)
	if _, err := a.put(t, fake("v1")); err != nil {
		t.Fatal(err)
	}
	broken := fake("v2")
	broken.Version = "v3"
	if _, err := a.put(t, broken); err == nil || !strings.Contains(err.Error(), `it is another version, "qtd v2"`) {
		t.Errorf("%v", err)
	}
	broken.Content = []byte("#!/bin/sh\nexit 1\n")
	if _, err := a.put(t, broken); err == nil {
		t.Error("no error")
	}
	if out, err := exec.Command(a.file(), "version").Output(); err != nil || string(out) != "qtd v1\n" {
		t.Errorf("%q, %v", out, err)
	}
	a.wantHome(t, "/.local", "/.local/bin", "/.local/bin/qtd")
}

// A login that neither answers nor ends is given up, even if a child keeps its output.
func TestSilentLogin(t *testing.T) {
	cmd := exec.Command("sh", "-c", "sleep 1000 & echo $! >&2; wait")
	said, errs := io.Pipe()
	cmd.Stderr, cmd.WaitDelay = errs, 100*time.Millisecond
	l, err := Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = begin(l, "", 300*time.Millisecond).next()
	if err == nil || !strings.Contains(err.Error(), "neither runs sh nor ends") {
		t.Errorf("%v", err)
	}
	if err := exec.Command("kill", strings.TrimSpace(pid)).Run(); err != nil {
		t.Error(err)
	}
}
