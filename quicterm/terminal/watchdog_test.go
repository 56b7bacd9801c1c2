//go:build linux || darwin

package terminal

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// endless is a session that shows some output, and ends when its test says so.
type endless struct {
	Session
	terminal *Terminal
	left     chan struct{}
}

func (s endless) Run(context.Context) (int, error) {
	streams := s.terminal.Streams()
	streams.Replayed()
	streams.Stdout.Write([]byte("\x1b[?1049h\x1b[?25l\x1b[?2004hready"))
	<-s.left
	return 0, errors.New("left")
}

func (s endless) TryWrite(b []byte) (int, uint64, error) {
	if bytes.Contains(b, []byte("q")) {
		close(s.left)
	}
	return len(b), 0, nil
}

func (endless) Flush()                 {}
func (endless) RTT() time.Duration     { return 0 }
func (endless) AskHint()               {}
func (endless) Resize(wire.Size) error { return nil }
func (endless) Sizing() wire.Sizing    { return wire.Sizing{} }
func (endless) Number() uint64         { return 1 }
func (endless) Exit() wire.ExitStatus  { return wire.ExitStatus{} }

// TestMain runs a terminal instead of tests if a test asks for that.
func TestMain(m *testing.M) {
	if os.Getenv("QUICTERM_TEST_TERMINAL") == "" {
		os.Exit(m.Run())
	}
	t := New(Config{In: os.Stdin, Out: os.Stdout, Escape: "none"})
	t.Run(context.Background(), endless{terminal: t, left: make(chan struct{})}, t.Size())
	os.Stdout.WriteString("the end")
}

// A user is a terminal, with a process that runs a session on it.
type user struct {
	t             *testing.T
	master, slave *os.File
	process       *exec.Cmd
	before        unix.Termios

	mu      sync.Mutex
	changed *sync.Cond
	shown   []byte
}

func newUser(t *testing.T) *user {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	u := &user{t: t, master: master, slave: slave, process: exec.Command(os.Args[0])}
	u.changed = sync.NewCond(&u.mu)
	u.before = u.modes()
	u.process.Env = append(os.Environ(), "QUICTERM_TEST_TERMINAL=1")
	u.process.Stdin, u.process.Stdout, u.process.Stderr = slave, slave, os.Stderr
	u.process.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := u.process.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for b := make([]byte, 4096); ; {
			n, err := master.Read(b)
			u.mu.Lock()
			u.shown = append(u.shown, b[:n]...)
			u.changed.Broadcast()
			u.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		u.process.Process.Kill()
		u.process.Wait()
		slave.Close()
		master.Close()
		<-done
	})
	return u
}

func (u *user) modes() unix.Termios {
	u.t.Helper()
	modes, err := unix.IoctlGetTermios(int(u.slave.Fd()), getModes)
	if err != nil {
		u.t.Fatal(err)
	}
	return *modes
}

// wantShown waits for text on the terminal.
func (u *user) wantShown(text string) {
	u.t.Helper()
	late := false
	defer time.AfterFunc(20*time.Second, func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		late = true
		u.changed.Broadcast()
	}).Stop()
	u.mu.Lock()
	defer u.mu.Unlock()
	for !strings.Contains(string(u.shown), text) {
		if late {
			u.t.Fatalf("the terminal got %q, want %q", u.shown, text)
		}
		u.changed.Wait()
	}
}

// wantModes waits until the terminal has the modes from before the session.
func (u *user) wantModes() {
	u.t.Helper()
	for until := time.Now().Add(20 * time.Second); u.modes() != u.before; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			u.t.Fatalf("the terminal has the modes %+v, want %+v", u.modes(), u.before)
		}
	}
}

// The watchdog restores the terminal of a client that was killed.
func TestKilledClient(t *testing.T) {
	u := newUser(t)
	u.wantShown("ready")
	u.process.Process.Kill()
	u.wantShown("\x1b[?1049l")
	u.wantShown("\x1b[?25h")
	u.wantShown(popTitle + "\r\n" + eraseBelow)
	u.wantModes()
}

// A watchdog whose process dies at once still restores the modes.
func TestKilledClientAtOnce(t *testing.T) {
	u := newUser(t)
	for until := time.Now().Add(20 * time.Second); u.modes().Lflag&unix.ICANON != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the terminal is not raw")
		}
	}
	u.process.Process.Kill()
	u.wantModes()
}

// Signals of the terminal do not reach the watchdog.
func TestKilledJob(t *testing.T) {
	u := newUser(t)
	u.wantShown("ready")
	syscall.Kill(-u.process.Process.Pid, syscall.SIGKILL)
	u.wantShown(popTitle)
	u.wantModes()
}

// A watchdog leaves alone what a shell has restored.
func TestWatchdogLeavesModes(t *testing.T) {
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	defer slave.Close()
	d := newWatchdog(slave, slave)
	if d == nil {
		t.Fatal("there is no watchdog")
	}
	want, err := unix.IoctlGetTermios(int(slave.Fd()), getModes)
	if err != nil {
		t.Fatal(err)
	}
	want.Lflag &^= unix.ECHO
	if err := unix.IoctlSetTermios(int(slave.Fd()), setModes, want); err != nil {
		t.Fatal(err)
	}
	d.pipe.Close() // as the kill of its client does
	if err := d.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	got, err := unix.IoctlGetTermios(int(slave.Fd()), getModes)
	if err != nil || *got != *want {
		t.Errorf("the terminal has the modes %+v (%v), want %+v", got, err, want)
	}
	b := make([]byte, len(screen.Reset))
	if _, err := io.ReadFull(master, b); err != nil || string(b) != screen.Reset {
		t.Errorf("it printed %q (%v)", b, err)
	}
}

// After a clean end the watchdog is gone, and writes nothing.
func TestCleanEnd(t *testing.T) {
	u := newUser(t)
	u.wantShown("ready")
	u.master.WriteString("q")
	u.wantShown("the end")
	if err := u.process.Wait(); err != nil {
		t.Error(err)
	}
	u.wantModes()
	u.mu.Lock()
	defer u.mu.Unlock()
	if end := popTitle + eraseBelow + "the end"; strings.Count(string(u.shown), popTitle) != 1 ||
		!strings.HasSuffix(string(u.shown), end) {
		t.Errorf("the terminal got %q, want %q at its end, once", u.shown, end)
	}
}

// A watchdog that is stopped, or off, prints nothing later.
func TestStoppedWatchdog(t *testing.T) {
	for _, end := range []func(*watchdog){
		func(d *watchdog) {
			d.cmd.Process.Signal(syscall.SIGSTOP)
			d.dismiss()
		},
		func(d *watchdog) {
			d.set(watchdogOff)
			d.set(watchdogOn)
			d.set(watchdogOff)
			d.pipe.Close()
			d.cmd.Wait()
		},
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		d := newWatchdog(w, w)
		w.Close()
		if d == nil {
			t.Fatal("there is no watchdog")
		}
		end(d)
		if b, _ := io.ReadAll(r); len(b) > 0 {
			t.Errorf("it printed %.40q", b)
		}
	}
}
