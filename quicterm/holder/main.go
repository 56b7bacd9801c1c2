//go:build linux || darwin

package holder

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/quicterm/holder/persist"
	"github.com/quicterm/quicterm/quicterm/holder/program"
	"github.com/quicterm/quicterm/quicterm/holder/socket"
	"github.com/quicterm/quicterm/quicterm/holder/spawn"
	"github.com/quicterm/quicterm/quicterm/machine/enrolled"
	"github.com/quicterm/quicterm/quicterm/machine/memory"
	"github.com/quicterm/quicterm/quicterm/machine/pam"
	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Main is the main function of a holder's process, which package spawn has started. It returns when
// the session is over. software is the name and version that daemons are told. If login, the value of
// [pam.SessionFlag], is not empty, the program runs in that session of PAM.
func Main(log *slog.Logger, software, login string) error {
	// The heap is small and changes little: memory matters more than the time of the
	// garbage collector.
	debug.SetGCPercent(30)
	// The program gets these signals even if the daemon ignored them, and none of them
	// ends or stops us.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGPIPE,
		syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU)
	syscall.Umask(0o022)
	reply := os.NewFile(spawn.ReplyFD, "reply")
	var opened *pam.Session
	var err error
	if login != "" {
		opened, err = pam.Adopt(login, log)
	}
	launch, readErr := readLaunch()
	err = cmp.Or(err, readErr)
	switch {
	case err != nil:
	case launch.Keys != nil:
		return replyTask(reply, func() (wire.Body, error) { return enrolled.Do(launch.Keys) })
	case launch.Persist != nil && launch.Persist.Task != wire.PersistKeep:
		return replyTask(reply, func() (wire.Body, error) { return persist.Answer(launch, log) })
	}
	var h *Holder
	var s *socket.Socket
	if err == nil {
		h, s, err = begin(launch, opened, log)
	}
	if err != nil {
		return errors.Join(err, wire.Send(reply, &wire.Error{Text: err.Error()}))
	}
	// What a session needs is short, and waits for others: a second processor costs more time to wake up
	// than it saves.
	runtime.GOMAXPROCS(1)
	h.software = software
	h.keepOnTerm()
	if err := wire.Send(reply, new(wire.Started)); err != nil {
		log.Warn("daemon is gone before the session has started", "error", err)
	}
	reply.Close()
	var wg sync.WaitGroup
	wg.Go(func() { h.Serve(s) })
	h.Run()
	s.Close()
	wg.Wait()
	h.Forget() // while this process lives, the record counts as that of a session that lives
	h.calls.sender.Wait()
	return nil
}

// OpenLogin is the main function of a process of root that becomes a holder: see [pam.Open]. It returns
// only on errors, which the daemon is told.
func OpenLogin(args []string) error {
	CloseInherited(spawn.SocketFD + 1)
	err := pam.Open(args, spawn.ReplyFD, spawn.SocketFD)
	return errors.Join(err, wire.Send(os.NewFile(spawn.ReplyFD, "reply"), &wire.Error{Text: err.Error()}))
}

func readLaunch() (*wire.Launch, error) {
	syscall.CloseOnExec(spawn.ReplyFD)
	launch := new(wire.Launch)
	m, err := wire.Read(os.Stdin, wire.MaxMessage)
	if err == nil {
		err = m.Decode(launch)
	}
	if err != nil {
		return nil, fmt.Errorf("read launch: %w", err)
	}
	return launch, nil
}

// replyTask does what this process was started for, and ends.
func replyTask(reply *os.File, do func() (wire.Body, error)) error {
	CloseInherited(spawn.ReplyFD + 1)
	answer, err := do()
	if err != nil {
		answer = &wire.Error{Text: err.Error()}
	}
	return errors.Join(err, wire.Send(reply, answer))
}

// keepOnTerm keeps the session on disk when the system stops this process, before that ends it.
func (h *Holder) keepOnTerm() {
	if h.keeper == nil {
		return
	}
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	go func() {
		<-term
		h.gate.Lock()
		h.life.stopping = !h.life.exited
		h.gate.Unlock()
		h.keeper.WriteLast()
		signal.Reset(syscall.SIGTERM)
		syscall.Kill(os.Getpid(), syscall.SIGTERM)
	}()
}

func begin(launch *wire.Launch, login *pam.Session, log *slog.Logger) (*Holder, *socket.Socket, error) {
	s, err := openSocket(launch)
	if err != nil {
		return nil, nil, fmt.Errorf("make socket: %w", err)
	}
	if err = freeStdin(); err != nil {
		err = fmt.Errorf("free standard input: %w", err)
	} else if login != nil {
		err = login.Await(time.Now().Add(loginTime))
	}
	var p *program.Process
	if launch.Side != 0 && err == nil {
		launch.Path, err = spawn.Executable()
	}
	if err == nil {
		p, err = program.Start(launch, login)
	}
	if err != nil {
		s.Close()
		return nil, nil, err
	}
	h := New(*launch, p, log)
	// A limit for when the collector falls behind, well above what the ring and the usual
	// garbage take.
	debug.SetMemoryLimit(int64(launch.Buffer)*3/2 + 64<<20)
	h.FitMemory(memory.Read)
	return h, s, nil
}

// openSocket makes the socket, or takes over the one that the daemon has bound.
func openSocket(launch *wire.Launch) (*socket.Socket, error) {
	base, name := rundir.Base(launch.Base), socket.Name(launch.ID)
	if launch.Socket == "" {
		CloseInherited(spawn.ReplyFD + 1)
		return socket.Listen(base, name)
	}
	syscall.CloseOnExec(spawn.SocketFD)
	CloseInherited(spawn.SocketFD + 1)
	return socket.Adopt(base, name, os.NewFile(spawn.SocketFD, launch.Socket), launch.Socket)
}

// freeStdin replaces standard input, on which the launch came, by the null device.
func freeStdin() error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	return dup2(int(null.Fd()), 0)
}

// CloseInherited closes the descriptors from first on that this process inherited: locks
// and pipes whose end other processes wait for, and which the program must not have. Go
// opens all its own with close-on-exec, so those without it were inherited.
func CloseInherited(first int) {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return // the system does not list them
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
