//go:build linux || darwin

package holder

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/quicterm/rundir"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// shell returns the spec of a session that runs a script.
func shell(t testing.TB, pty bool, script string) wire.Spec {
	t.Helper()
	return wire.Spec{
		PTY:    pty,
		Size:   [4]uint16{80, 24},
		Path:   "/bin/sh",
		Argv:   []string{"sh", "-c", script},
		Env:    []string{"PATH=" + os.Getenv("PATH")},
		Dir:    shortDir(t),
		Buffer: 16 << 20,
	}
}

// running returns a holder of a real process.
func running(t testing.TB, spec wire.Spec) *world {
	t.Helper()
	p, err := StartProgram(&spec)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, log: new(logbook), patience: 20 * time.Second}
	w.start(spec, p)
	t.Cleanup(func() {
		p.Hangup(syscall.SIGKILL)
		w.end()
	})
	return w
}

// both runs a test without a terminal and with one.
func both(t *testing.T, f func(t *testing.T, pty bool)) {
	t.Run("pipe", func(t *testing.T) { f(t, false) })
	t.Run("terminal", func(t *testing.T) { f(t, true) })
}

func TestExitStatus(t *testing.T) {
	both(t, func(t *testing.T, pty bool) {
		for script, want := range map[string]byte{
			"exit 0":           0,
			"exit 7":           7,
			"exit 255":         255,
			"no-such 2>&1":     127,
			"kill -TERM $$":    143,
			"kill -KILL $$":    137,
			"kill -SEGV $$":    139,
			"echo; kill -9 $$": 137,
		} {
			w := running(t, shell(t, pty, script))
			if got := w.attach("a@x").awaitExit(); got != want {
				t.Errorf("%q: status %d, want %d", script, got, want)
			}
		}
	})
}

// A client's signals reach what runs, and their number is told when it ends so.
func TestSignals(t *testing.T) {
	both(t, func(t *testing.T, pty bool) {
		for name, sig := range signals {
			w := running(t, shell(t, pty, "echo ready; exec sleep 1000"))
			a := w.attach("a@x")
			a.awaitOutput("ready")
			a.send(session.Signal, "NONE")
			a.send(session.Signal, "SIG"+name)
			a.send(session.Signal, "")
			a.send(session.Signal, name)
			if got, want := a.awaitExit(), byte(128+int(sig)); got != want {
				t.Errorf("%s: status %d, want %d", name, got, want)
			}
		}
	})
}

// With a terminal, what is in the foreground gets them.
func TestSignalInForeground(t *testing.T) {
	w := running(t, shell(t, true, "set -m; trap 'echo shell' INT; (trap 'echo child; exit 0' INT; echo ready; while :; do sleep 0.01; done); echo st$?"))
	a := w.attach("a@x")
	a.awaitOutput("ready")
	a.send(session.Signal, "INT")
	a.awaitOutput("child")
	if got := a.awaitExit(); got != 0 || !strings.Contains(a.output(), "st0") || strings.Contains(a.output(), "shell") {
		t.Errorf("status %d, output %q", got, a.output())
	}
}

// What was stopped is hung up all the same.
func TestHangupOfStopped(t *testing.T) {
	both(t, func(t *testing.T, pty bool) {
		w := running(t, shell(t, pty, "echo ready; kill -STOP $$; echo on"))
		a := w.attach("a@x")
		a.awaitOutput("ready")
		m, _ := w.ask(&wire.Open{}, &wire.Kill{})
		w.want("kill", m, &wire.Done{})
		if got := a.awaitExit(); got != 129 {
			t.Errorf("status %d, want 129; output %q", got, a.output())
		}
	})
}

// A session can be killed whose program has ended and left others behind that
// have its output.
func TestKillOfThoseLeftBehind(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, pty bool) {
		t.Parallel()
		w := running(t, shell(t, pty, "trap '' HUP; sleep 1000 & echo child $!; exit 3"))
		a := w.attach("a@x")
		a.awaitOutput("child")
		a.await("the whole line", func() bool { return strings.HasSuffix(a.outputLocked(session.Stdout), "\n") })
		var child int
		if _, err := fmt.Sscanf(a.output(), "child %d", &child); err != nil {
			t.Fatal(err)
		}
		defer syscall.Kill(child, syscall.SIGKILL)
		m, _ := w.ask(&wire.Open{}, &wire.Kill{})
		w.want("kill", m, &wire.Done{})
		if got := a.awaitExit(); got != 3 {
			t.Errorf("status %d, want 3", got)
		}
		a.awaitEnd()
		if !w.over() {
			t.Error("the session goes on")
		}
	})
}

// A real terminal that nobody is at blocks nothing.
func TestTerminalWithoutClient(t *testing.T) {
	spec := shell(t, true, `i=0; while [ $i -lt 20000 ]; do echo "line $i"; i=$((i+1)); done; echo > done; cat`)
	w := running(t, spec)
	w.await("the program to print all", func() bool {
		_, err := os.Stat(filepath.Join(spec.Dir, "done"))
		return err == nil
	})
	a := w.attach("a@x")
	a.awaitOutput("line 19999\r\n")
	if n := strings.Count(a.output(), "\r\n"); n != 20000 {
		t.Errorf("%d lines", n)
	}
	a.send(session.Resize, string(session.Size{Cols: 91, Rows: 31}.Append(nil)))
	a.ping()
	a.send(session.EOF, "\x00")
	if got := a.awaitExit(); got != 0 {
		t.Errorf("status %d", got)
	}
}

// await waits until something is so that nothing tells of.
func (w *world) await(what string, ok func() bool) {
	w.t.Helper()
	for until := time.Now().Add(w.patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			w.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// A real pipe that is full stops the program, and nothing is lost.
func TestPipeFull(t *testing.T) {
	spec := shell(t, false, `cat big; echo $? > done`)
	spec.Buffer = 1 << 20
	big := make([]byte, 6<<20)
	rand.Read(big)
	if err := os.WriteFile(filepath.Join(spec.Dir, "big"), big, 0o600); err != nil {
		t.Fatal(err)
	}
	w := running(t, spec)
	room := 0
	w.await("the ring to be full", func() bool {
		w.locked(func(h *Holder) { room = h.ring.Room() })
		return room < readSize
	})
	if _, err := os.Stat(filepath.Join(spec.Dir, "done")); err == nil {
		t.Error("the program has not waited")
	}
	a := w.attach("a@x")
	if got := a.awaitExit(); got != 0 || !bytes.Equal([]byte(a.output()), big) {
		t.Errorf("status %d behind %d bytes, want 0 behind %d", got, len(a.output()), len(big))
	}
}

// Nothing of an environment is inherited, not even when there is none.
func TestEnvironment(t *testing.T) {
	t.Setenv("SECRET", "of the daemon")
	for _, env := range [][]string{nil, {}, {"A=1", "B=two words"}} {
		spec := wire.Spec{Path: "/usr/bin/env", Argv: []string{"env"}, Env: env, Dir: "/"}
		want := ""
		for _, v := range env {
			want += v + "\n"
		}
		w := running(t, spec)
		a := w.attach("a@x")
		if a.awaitExit(); a.output() != want {
			t.Errorf("environment %q: the program has %q", env, a.output())
		}
		got, _ := startHolder(t, spec)
		if got != want {
			t.Errorf("environment %q: the program of a holder's process has %q", env, got)
		}
	}
}

// startHolder runs a session in a process of its own, to its end.
func startHolder(t *testing.T, spec wire.Spec) (output string, status byte) {
	t.Helper()
	spec.ID, spec.Name, spec.ExitedTTL, spec.PipeTTL = wire.SessionID{9}, "process", time.Minute, time.Minute
	spec.Base = filepath.Join(shortDir(t), "run")
	if _, err := Start(context.Background(), &spec, nil); err != nil {
		t.Fatal(err)
	}
	dir, err := rundir.Base(spec.Base).Make(uint32(os.Geteuid()))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, h: &Holder{spec: spec}, path: filepath.Join(dir, SocketName(spec.ID)), patience: 20 * time.Second}
	defer w.wg.Wait()
	a := w.attach("a@x")
	status = a.awaitExit()
	a.awaitEnd()
	w.await("the holder's socket to go with it", func() bool {
		_, err := os.Lstat(w.path)
		return os.IsNotExist(err)
	})
	return a.output(), status
}

// Where a program's directory cannot be entered it runs in the root directory.
func TestDirectory(t *testing.T) {
	dir := shortDir(t)
	link := filepath.Join(dir, "link")
	file := filepath.Join(dir, "file")
	closed := filepath.Join(dir, "closed")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(closed, 0); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		dir:                           dir,
		link:                          dir,
		file:                          "/",
		filepath.Join(dir, "no-such"): "/",
		filepath.Join(file, "x"):      "/",
		"":                            "/",
		closed:                        "/",
	}
	if os.Geteuid() == 0 {
		t.Log("root can enter any directory: one that is closed is not tried")
		delete(want, closed)
	}
	for dir, want := range want {
		spec := shell(t, false, "pwd -P")
		spec.Dir = dir
		a := running(t, spec).attach("a@x")
		real, err := filepath.EvalSymlinks(want)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.awaitExit(); got != 0 || a.output() != real+"\n" {
			t.Errorf("%q: status %d, runs in %q, want %q", dir, got, a.output(), want)
		}
	}
}

// What cannot be run is told in one line, and leaves nothing behind.
func TestProgramThatCannotStart(t *testing.T) {
	dir := shortDir(t)
	write := func(name, content string, mode os.FileMode) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for path, why := range map[string]string{
		filepath.Join(dir, "no-such"):                  "no such file or directory",
		write("not executable", "#!/bin/sh\n", 0o600):  "permission denied",
		write("no interpreter", "#!/no/such\n", 0o700): "no such file or directory",
		write("no program", "\x00\x01\x02", 0o700):     "exec format error",
		dir: "permission denied",
	} {
		both(t, func(t *testing.T, pty bool) {
			spec := shell(t, pty, "true")
			spec.Path = path
			spec.Base = filepath.Join(shortDir(t), "run")
			want := fmt.Sprintf("start %s: %s", path, why)
			if _, err := StartProgram(&spec); err == nil || err.Error() != want {
				t.Errorf("StartProgram: %v, want %s", err, want)
			}
			if _, err := Start(context.Background(), &spec, nil); err == nil || err.Error() != want {
				t.Errorf("Start: %v, want %s", err, want)
			}
			w := &world{t: t, patience: 20 * time.Second}
			w.await("the socket to go", func() bool {
				left, err := filepath.Glob(filepath.Join(spec.Base, "*", "*"))
				return err == nil && len(left) == 0
			})
		})
	}
}

// A variable that no program can be given is refused.
func TestStartWithNUL(t *testing.T) {
	spec := shell(t, false, "true")
	spec.Env = append(spec.Env, "A=1\x002")
	if p, err := StartProgram(&spec); err == nil {
		p.Close()
		t.Error("no error")
	}
}

// A session in a process of its own has what a login has: the terminal as it was
// asked for, and nothing of who has started it.
func TestHolderProcess(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	// As a shell does it that runs us with a lock or a pipe.
	inherited, err := unix.Dup(int(w.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(inherited)
	script := fmt.Sprintf("stty size; test -t 0 && test -t 1 && test -t 2 && echo tty; umask; pwd; test -e /dev/fd/%d && echo leaked; kill -s USR1 $$", inherited)
	spec := shell(t, true, script)
	spec.Size = [4]uint16{93, 17}
	out, status := startHolder(t, spec)
	want := "17 93\r\ntty\r\n0022\r\n" + spec.Dir + "\r\n"
	if out != want || status != byte(128+int(syscall.SIGUSR1)) {
		t.Errorf("status %d, output %q, want %q", status, out, want)
	}
}

// Start does not wait longer than its caller.
func TestStartGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	spec := shell(t, false, "sleep 1000")
	spec.Base = filepath.Join(shortDir(t), "run")
	if _, err := Start(ctx, &spec, nil); err == nil {
		t.Error("no error")
	}
}
