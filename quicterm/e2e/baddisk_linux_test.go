package e2e

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/bench/rig"
)

// On a host whose disk is full, or whose home runs no programs, qt connect and qt install end with
// one line that says so.
func TestBadDisk(t *testing.T) {
	skipUnderRace(t)
	if !inside(t) {
		return
	}
	rig.IP(t, "link", "set", "lo", "up")
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	mount := func(s *sshHost, dir string, flags uintptr, options string) {
		t.Helper()
		err := errors.Join(os.MkdirAll(s.Path(dir), 0o700), unix.Mount("tmpfs", s.Path(dir), "tmpfs", flags, options))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Unmount(s.Path(dir), unix.MNT_DETACH) })
	}
	fill := func(s *sshHost, dir string) {
		t.Helper()
		for size := 4096; size > 0; size /= 4096 {
			for i := 0; ; i++ {
				if err := os.WriteFile(s.Path(dir+"/full-"+strings.Repeat("x", i)), make([]byte, size), 0o600); errors.Is(err, syscall.ENOSPC) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, c := range []struct {
		name, command string
		prepare       func(s *sshHost)
		want          string
	}{
		{"connect, disk is full", "connect", func(s *sshHost) {
			mount(s, "state", 0, "size=64k,mode=700")
			fill(s, "state")
		}, `qtd on target: .*no space left on device`},
		{"connect, home is noexec", "connect", func(s *sshHost) {
			mount(s, "home", unix.MS_NOEXEC, "size=64k,mode=700")
			script := s.Read("remote/qtd")
			os.Remove(s.Path("remote/qtd"))
			s.Write("home/.local/bin/qtd", script)
			os.Chmod(s.Path("home/.local/bin/qtd"), 0o755)
		}, `qtd on target cannot be run: .*Permission denied.*`},
		{"install, home is full", "install", func(s *sshHost) { mount(s, "home", 0, "size=64k,mode=700") },
			`could not install qtd on target: the copy cannot be written: .*No space left on device.*`},
		{"install, home is noexec", "install", func(s *sshHost) { mount(s, "home", unix.MS_NOEXEC, "mode=700") },
			`could not install qtd on target: the copied qtd does not run there: .*noexec.*`},
	} {
		s := newSSHHostAlone(t)
		s.Serve()
		c.prepare(s)
		args := []string{c.command, "-F", s.Config(), target}
		if c.command == "connect" {
			args = append(args, "true")
		}
		cmd := exec.Command(filepath.Join(bin, "qt"), args...)
		cmd.Env = append(s.Env(), "XDG_STATE_HOME="+s.Path("client-state"))
		cmd.SysProcAttr = noTerminal
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != 255 || len(out) > 0 {
			t.Errorf("%s: %q, %v; want the exit status 255", c.name, out, err)
		}
		if !regexp.MustCompile(`^(qt: copying .*\n)?qt: (` + c.want + `)\n$`).Match(errs.Bytes()) {
			t.Errorf("%s: %q, want the line %q", c.name, &errs, c.want)
		}
		if left, _ := filepath.Glob(s.Path("home/.local/bin/*")); c.command == "install" && left != nil {
			t.Errorf("%s: left %q", c.name, left)
		}
	}
}

// The daemon's doctor says that the disk of its keys is full: a daemon that has none yet does not start. The client's
// says it of its own.
func TestDoctorDiskFull(t *testing.T) {
	if !inside(t) {
		return
	}
	rig.IP(t, "link", "set", "lo", "up")
	h := newHost(t)
	dir := h.Path("state")
	err := errors.Join(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		os.MkdirAll(dir, 0o700),
		unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k,mode=700"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	h.Start()
	want(t, qtdDoctor(h), "state ok ")
	full := filepath.Join(dir, "full")
	if err := os.WriteFile(full, make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	want(t, qtdDoctor(h), "state fail write .*: no space left on device — make room")
	want(t, func() *exec.Cmd {
		cmd := h.QT("doctor")
		cmd.Env = append(cmd.Env, "XDG_STATE_HOME="+dir)
		return cmd
	}, "state warn write .*: no space left on device — make it writable, make room")
	if left, err := filepath.Glob(dir + "/.doctor-*"); err != nil || left != nil {
		t.Errorf("left %q, %v", left, err)
	}
}

// A disk with the records of sessions that is full, or does not answer, costs sessions nothing but their records, and
// the log says so once.
func TestPersistBadDisk(t *testing.T) {
	skipUnderRace(t)
	if !inside(t) {
		return
	}
	rig.IP(t, "link", "set", "lo", "up")
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, said string
		prepare    func(t *testing.T, dir string)
	}{
		{"full", "the session is not kept on disk, and continues.*no space left on device", func(t *testing.T, dir string) {
			if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4k,mode=700"); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
			if err := os.WriteFile(filepath.Join(dir, "full"), make([]byte, 4096), 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{"hung", "the record of the session may be left: the disk does not answer", func(t *testing.T, dir string) {
			if err := rig.CanHang(); err != nil {
				t.Skip(err)
			}
			rig.NewHungFS(t).Mount(dir)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHostAlone(t)
			dir := h.Path("sessions")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			h.Settings["persist"] = `"screen"`
			h.Settings["persist_dir"] = `"` + dir + `"`
			test.prepare(t, dir)
			h.Start()
			x := h.Shell(h.Addr, "-s", "work")
			x.Run("seq 100000 999999 | tail -n 1", "999999")
			if test.name == "full" {
				h.Log.Await(t, 0, regexp.MustCompile(test.said))
			}
			x.Run("echo al''ive", "alive")
			if out, err := h.QT("ls").CombinedOutput(); err != nil || !strings.Contains(string(out), "work  attached") {
				t.Errorf("qt ls: %v\n%s", err, out)
			}
			x.Send("exit 4\r")
			if status := x.Exit(); status != 4 {
				t.Errorf("exit status %d, want 4", status)
			}
			h.Log.Await(t, 0, regexp.MustCompile("event=end"))
			h.Log.Await(t, 0, regexp.MustCompile(test.said))
			if n := strings.Count(h.Log.String(), "is not kept on disk"); n > 1 {
				t.Errorf("the log says %d times that the session is not kept", n)
			}
		})
	}
}
