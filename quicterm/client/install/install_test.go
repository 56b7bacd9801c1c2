//go:build linux || darwin

package install

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fake returns a program that says that it is a qtd of a version.
func fake(version string) *Binary {
	content := fmt.Appendf(nil, "#!/bin/sh\necho qtd %s; exit\n", version)
	noise := rand.NewChaCha8([32]byte{1})
	rest := make([]byte, 300<<10)
	noise.Read(rest)
	return &Binary{Version: version, Content: append(content, rest...)}
}

// An account is what commands on a host run with.
type account struct {
	home, path string
	shells     string   // where shells have their own files
	login      []string // runs a command that follows; sh -c if empty
}

func newAccount(t *testing.T) *account {
	return &account{home: t.TempDir(), path: os.Getenv("PATH"), shells: t.TempDir()}
}

func (a *account) start(t *testing.T) *Process {
	t.Helper()
	login := a.login
	if login == nil {
		login = []string{"sh", "-c"}
	}
	cmd := exec.Command(login[0], append(login[1:], Command)...)
	cmd.Env = []string{"HOME=" + a.home, "PATH=" + a.path, "XDG_CONFIG_HOME=" + a.shells, "XDG_DATA_HOME=" + a.shells}
	cmd.Stderr = new(bytes.Buffer)
	l, err := Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// put installs a program on a host of any platform.
func (a *account) put(t *testing.T, b *Binary) (*Report, error) {
	find := func(p Platform) (*Binary, error) {
		b.Platform = p
		return b, nil
	}
	return Install(a.start(t), find, func(*Binary) {})
}

func (a *account) file() string { return filepath.Join(a.home, ".local/bin/qtd") }

// wantHome checks which files the home has.
func (a *account) wantHome(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	filepath.WalkDir(a.home, func(path string, _ os.DirEntry, _ error) error {
		got = append(got, strings.TrimPrefix(path, a.home))
		return nil
	})
	if strings.Join(got[1:], " ") != strings.Join(want, " ") {
		t.Errorf("home has %q, want %q", got[1:], want)
	}
}

// Every login shell runs the script.
func TestShells(t *testing.T) {
	for _, shell := range []string{"sh", "dash", "bash", "zsh", "fish", "tcsh", "mksh", "busybox sh"} {
		t.Run(shell, func(t *testing.T) {
			login := append(strings.Fields(shell), "-c")
			if _, err := exec.LookPath(login[0]); err != nil {
				t.Skip(err)
			}
			a := newAccount(t)
			a.login = login
			for i, step := range []struct {
				version, before string
				copied          bool
			}{{"v1", "", true}, {"v1", "qtd v1", false}, {"v2", "qtd v1", true}} {
				r, err := a.put(t, fake(step.version))
				if err != nil {
					t.Fatal(err)
				}
				want := Report{File: a.file(), Platform: r.Platform, Copied: step.copied, Version: "qtd " + step.version,
					Before: step.before, Checked: step.copied, First: r.First}
				if *r != want {
					t.Errorf("step %d: %+v, want %+v", i, *r, want)
				}
				content, err := os.ReadFile(a.file())
				if err != nil || !bytes.Equal(content, fake(step.version).Content) {
					t.Errorf("step %d: the file differs: %v", i, err)
				}
				info, err := os.Stat(a.file())
				if err != nil || info.Mode() != 0o755 {
					t.Errorf("step %d: %v, %v", i, info.Mode(), err)
				}
			}
			a.wantHome(t, "/.local", "/.local/bin", "/.local/bin/qtd")
		})
	}
}

func TestPlatform(t *testing.T) {
	for uname, want := range map[string]string{
		"Linux x86_64": "linux/amd64", "Linux aarch64": "linux/arm64", "Darwin arm64": "darwin/arm64", "Linux i686": "linux/386",
		"Linux armv7l": "linux/arm", "Linux riscv64": "linux/riscv64", "FreeBSD amd64": "freebsd/amd64",
		"": "", "Linux": "", "MINGW64_NT-10.0 x86_64": "", "Linux ../x": "", "Linux a b": "",
	} {
		p, err := ParsePlatform(uname)
		if got := p.String(); err == nil && got != want || err != nil && want != "" {
			t.Errorf("%q: %s, %v; want %q", uname, got, err, want)
		}
	}
}
