//go:build linux || darwin

package holder

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/holder/program"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// shell returns the launch of a session that runs a script.
func shell(t testing.TB, pty bool, script string) wire.Launch {
	t.Helper()
	return wire.Launch{
		PTY:    pty,
		Size:   wire.Size{Cols: 80, Rows: 24},
		Path:   "/bin/sh",
		Argv:   []string{"sh", "-c", script},
		Env:    []string{"PATH=" + os.Getenv("PATH")},
		Dir:    shortDir(t),
		Buffer: 16 << 20,
	}
}

// running returns a holder of a real process.
func running(t testing.TB, launch wire.Launch) *world {
	t.Helper()
	p, err := program.Start(&launch, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, log: new(logbook), timeout: 20 * time.Second}
	w.start(launch, p)
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

// The exit status is that of a shell.
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

// A client's signals reach the program, and the status tells which killed it.
func TestSignals(t *testing.T) {
	both(t, func(t *testing.T, pty bool) {
		for name, sig := range program.Signals {
			w := running(t, shell(t, pty, "echo ready; exec sleep 1000"))
			a := w.attach("a@x")
			a.awaitOutput("ready")
			a.send(wire.Signal, "NONE")
			a.send(wire.Signal, "SIG"+name)
			a.send(wire.Signal, "")
			a.send(wire.Signal, name)
			if got, want := a.awaitExit(), byte(128+int(sig)); got != want {
				t.Errorf("%s: status %d, want %d", name, got, want)
			}
		}
	})
}

// On a terminal, the processes in the foreground get them.
func TestSignalInForeground(t *testing.T) {
	w := running(t, shell(t, true, "set -m; trap 'echo shell' INT; (trap 'echo child; exit 0' INT; echo ready; while :; do sleep 0.01; done); echo st$?"))
	a := w.attach("a@x")
	a.awaitOutput("ready")
	a.send(wire.Signal, "INT")
	a.awaitOutput("child")
	if got := a.awaitExit(); got != 0 || !strings.Contains(a.output(), "st0") || strings.Contains(a.output(), "shell") {
		t.Errorf("status %d, output %q", got, a.output())
	}
}

// A stopped program is hung up as well.
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

// A session can be killed whose program has ended and left processes behind that hold its
// output.
func TestKillOfThoseLeftBehind(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, pty bool) {
		t.Parallel()
		w := running(t, shell(t, pty, "trap '' HUP; sleep 1000 & echo child $!; exit 3"))
		a := w.attach("a@x")
		a.awaitOutput("child")
		a.await("the whole line", func() bool { return strings.HasSuffix(a.outputLocked(wire.Stdout), "\n") })
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
			t.Error("the session continues")
		}
	})
}

// A real terminal without a client does not stop its program.
func TestTerminalWithoutClient(t *testing.T) {
	launch := shell(t, true, `i=0; while [ $i -lt 20000 ]; do echo "line $i"; i=$((i+1)); done; echo > done; cat`)
	w := running(t, launch)
	w.await("the program to print all", func() bool {
		_, err := os.Stat(filepath.Join(launch.Dir, "done"))
		return err == nil
	})
	a := w.attach("a@x")
	a.awaitOutput("line 19999\r\n")
	if n := strings.Count(a.output(), "\r\n"); n != 20000 {
		t.Errorf("%d lines", n)
	}
	a.send(wire.Resize, string(wire.Size{Cols: 91, Rows: 31}.Append(nil)))
	a.ping()
	a.send(wire.EOF, "\x00")
	if got := a.awaitExit(); got != 0 {
		t.Errorf("status %d", got)
	}
}

// A full pipe stops a real program, and nothing is lost.
func TestPipeFull(t *testing.T) {
	launch := shell(t, false, `cat big; echo $? > done`)
	launch.Buffer = 1 << 20
	big := make([]byte, 6<<20)
	rand.Read(big)
	if err := os.WriteFile(filepath.Join(launch.Dir, "big"), big, 0o600); err != nil {
		t.Fatal(err)
	}
	w := running(t, launch)
	room := 0
	w.await("the ring to be full", func() bool {
		w.locked(func(h *Holder) { room = h.ring.Room() })
		return room < maxPipeRead
	})
	if _, err := os.Stat(filepath.Join(launch.Dir, "done")); err == nil {
		t.Error("the program has not waited")
	}
	a := w.attach("a@x")
	if got := a.awaitExit(); got != 0 || !bytes.Equal([]byte(a.output()), big) {
		t.Errorf("status %d behind %d bytes, want 0 behind %d", got, len(a.output()), len(big))
	}
}

// A program whose directory cannot be entered runs in the root directory.
func TestDirectory(t *testing.T) {
	dir := shortDir(t)
	conn := filepath.Join(dir, "link")
	file := filepath.Join(dir, "file")
	closed := filepath.Join(dir, "closed")
	if err := os.Symlink(dir, conn); err != nil {
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
		conn:                          dir,
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
		launch := shell(t, false, "pwd -P")
		launch.Dir = dir
		a := running(t, launch).attach("a@x")
		real, err := filepath.EvalSymlinks(want)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.awaitExit(); got != 0 || a.output() != real+"\n" {
			t.Errorf("%q: status %d, runs in %q, want %q", dir, got, a.output(), want)
		}
	}
}

// A variable that no program can be given is refused.
func TestStartWithNUL(t *testing.T) {
	launch := shell(t, false, "true")
	launch.Env = append(launch.Env, "A=1\x002")
	if p, err := program.Start(&launch, nil); err == nil {
		p.Close()
		t.Error("no error")
	}
}
