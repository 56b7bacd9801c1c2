//go:build linux || darwin

package holder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/quicterm/rundir"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Command is the argument by which a daemon's executable becomes a holder.
const Command = "hold"

// LogFlag is the flag of Command that is followed by the file for its log.
const LogFlag = "--log-file"

// startTime bounds how long a holder may take to start.
const startTime = 20 * time.Second

// replyFD is the descriptor on which a new holder says how its start went.
const replyFD = 3

// Start starts a holder as a process of its own, that lives on when this one
// ends, and waits until its program runs and its socket listens. The credential
// is nil for the account of this process; then its log goes to our standard
// error, otherwise to where LogFlag in args says.
// Whenever it returns a process id, that process is the caller's to wait for.
func Start(ctx context.Context, spec *wire.Spec, credential *syscall.Credential, args ...string) (pid int, err error) {
	exe, err := executable()
	if err != nil {
		return 0, err
	}
	m, err := wire.New(spec)
	if err != nil {
		return 0, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	cmd := exec.Command(exe, append([]string{Command}, args...)...)
	cmd.Args[0] = "qtd"
	cmd.Dir = "/"
	cmd.Env = []string{}
	cmd.Stdin = strings.NewReader(string(m.Append(nil)))
	if credential == nil {
		cmd.Stderr = os.Stderr
	}
	cmd.ExtraFiles = []*os.File{w}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: credential}
	err = cmd.Start()
	w.Close()
	if err != nil {
		return 0, fmt.Errorf("start holder: %w", err)
	}
	pid = cmd.Process.Pid
	defer cmd.Process.Release()
	r.SetReadDeadline(time.Now().Add(startTime))
	stop := context.AfterFunc(ctx, func() { r.SetReadDeadline(time.Now()) })
	defer stop()
	reply, err := wire.Read(r, wire.MaxMessage)
	if err != nil {
		cmd.Process.Kill()
		return pid, fmt.Errorf("holder did not start: %w", err)
	}
	failed := new(wire.Error)
	if err := reply.Decode(failed); err == nil {
		return pid, errors.New(failed.Text)
	}
	return pid, nil
}

// executable returns the file of this very program, also after another version
// was put in its place.
func executable() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(exe); err != nil {
		return "/proc/self/exe", nil
	}
	return exe, nil
}

// Main is a holder's process, started by Start.
func Main(log *slog.Logger) error {
	// What waits behind is small and changes little: memory matters more
	// than the collector's time.
	debug.SetGCPercent(30)
	// The program shall get these, whatever those who started us ignored; we
	// live without a terminal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGPIPE,
		syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU)
	syscall.Umask(0o022)
	CloseInherited(replyFD + 1)
	reply := os.NewFile(replyFD, "reply")
	h, s, err := begin(log)
	if err != nil {
		return errors.Join(err, wire.Send(reply, &wire.Error{Text: err.Error()}))
	}
	if err := wire.Send(reply, &wire.Done{}); err != nil {
		log.Warn("the daemon is gone already", "error", err)
	}
	reply.Close()
	var wg sync.WaitGroup
	wg.Go(func() { h.Serve(s) })
	h.Run()
	s.Close()
	wg.Wait()
	return nil
}

func begin(log *slog.Logger) (*Holder, *Socket, error) {
	syscall.CloseOnExec(replyFD)
	var spec wire.Spec
	m, err := wire.Read(os.Stdin, wire.MaxMessage)
	if err == nil {
		err = m.Decode(&spec)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read spec: %w", err)
	}
	if err := freeStdin(); err != nil {
		return nil, nil, err
	}
	s, err := Listen(rundir.Base(spec.Base), SocketName(spec.ID))
	if err != nil {
		return nil, nil, fmt.Errorf("make socket: %w", err)
	}
	p, err := StartProgram(&spec)
	if err != nil {
		s.Close()
		return nil, nil, err
	}
	return New(spec, p, log), s, nil
}

// freeStdin replaces standard input, which was the daemon's, by nothing.
func freeStdin() error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	return dup2(int(null.Fd()), 0)
}

// CloseInherited closes the descriptors from first on that came from whoever
// started this process: locks and pipes that others wait for the end of, and that
// are nothing to a session's program. All that Go opens is closed on exec, so
// what is not was there before.
func CloseInherited(first int) {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return // not every system tells
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd < first {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			unix.Close(fd)
		}
	}
}

// SocketName returns the name of the socket of a session's holder.
func SocketName(id wire.SessionID) string { return id.String() + socketSuffix }

const socketSuffix = ".sock"

// ParseSocketName returns the session that a file name is the socket of.
func ParseSocketName(name string) (wire.SessionID, bool) {
	hex, ok := strings.CutSuffix(name, socketSuffix)
	id, err := wire.ParseSessionID(hex)
	return id, ok && err == nil
}
