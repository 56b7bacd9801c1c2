//go:build linux || darwin

// Package program runs the program of a session, as a process on a terminal or on pipes.
package program

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/quicterm/holder/listening"
	"github.com/quicterm/quicterm/quicterm/machine/keyring"
	"github.com/quicterm/quicterm/quicterm/machine/pam"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A Process is the first process of a program, with those that it starts. It implements [holder.Program].
//
// [holder.Program]: https://pkg.go.dev/github.com/quicterm/quicterm/quicterm/holder#Program
type Process struct {
	pid      int
	wait     func() (status byte, killed syscall.Signal)
	terminal *burstReader // nil without one
	stdin    io.WriteCloser
	stdout   io.ReadCloser
	stderr   io.ReadCloser // nil on a terminal
	shell    bool          // it is a login shell, in which a person types
	tty      string        // the name of its end of the terminal
	members  members

	mu         sync.Mutex
	foreground foreground
	reaped     bool // another process may have its id now

	looking   sync.Mutex // guards listening
	listening listening.Finder
}

// Start runs the program of a session, in a session of PAM if login is not nil.
func Start(launch *wire.Launch, login *pam.Session) (*Process, error) {
	cmd := &exec.Cmd{Path: launch.Path, Args: launch.Argv, Env: launch.Env, Dir: launch.Dir}
	if cmd.Env == nil {
		cmd.Env = []string{} // nil would inherit ours
	}
	if launch.Start != "" {
		if cmd.Dir = launch.Start; !filepath.IsAbs(cmd.Dir) {
			cmd.Dir = filepath.Join(launch.Dir, cmd.Dir)
		}
		if err := enterable(cmd.Dir); err != nil {
			return nil, fmt.Errorf("the session cannot start in %s: %w", cmd.Dir, err)
		}
	} else if enterable(cmd.Dir) != nil {
		cmd.Dir = "/"
	}
	if launch.PTY {
		return startTerminal(cmd, launch, login)
	}
	return startPipes(cmd, login)
}

// enterable returns why a program cannot start in a directory, or nil.
func enterable(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		return syscall.ENOTDIR
	}
	if err == nil {
		err = unix.Access(dir, unix.X_OK)
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

func startTerminal(cmd *exec.Cmd, launch *wire.Launch, login *pam.Session) (*Process, error) {
	master, tty, err := pty.Open()
	if err != nil {
		return nil, fmt.Errorf("no terminal available: %w", err)
	}
	defer master.Close()
	defer tty.Close()
	if err := setTerminal(tty); err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.Env = append(cmd.Env, "SSH_TTY="+tty.Name()) // as sshd has it: prompts and gpg look for it
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	terminal, err := pollable(master)
	if err != nil {
		return nil, err
	}
	output, err := newBurstReader(terminal)
	if err != nil {
		terminal.Close()
		return nil, err
	}
	p := &Process{
		terminal: output, stdin: output, stdout: output, shell: strings.HasPrefix(launch.Argv[0], "-"), tty: tty.Name(),
	}
	if i := slices.IndexFunc(cmd.Env, func(v string) bool { return strings.HasPrefix(v, wire.SocketVariable+"=") }); i >= 0 {
		p.listening.Mark = cmd.Env[i]
	}
	if err := p.Resize(launch.Size); err != nil {
		terminal.Close()
		return nil, err
	}
	if err := p.begin(cmd, login, tty); err != nil {
		terminal.Close()
		return nil, startError(cmd, err)
	}
	return p, nil
}

// pollable returns the same file in a form whose Close ends a Read that blocks.
func pollable(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("dup", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("set nonblocking", err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

func startPipes(cmd *exec.Cmd, login *pam.Session) (*Process, error) {
	var files []*os.File
	closeAll := func(files []*os.File) {
		for _, f := range files {
			f.Close()
		}
	}
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(files)
			return nil, err
		}
		files = append(files, r, w)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = files[0], files[3], files[5]
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	p := &Process{stdin: files[1], stdout: growing(files[2]), stderr: files[4]}
	theirs := []*os.File{files[0], files[3], files[5]}
	if err := p.begin(cmd, login, theirs...); err != nil {
		closeAll(files)
		return nil, startError(cmd, err)
	}
	closeAll(theirs)
	return p, nil
}

// begin starts a command that has the files as its standard files.
func (p *Process) begin(cmd *exec.Cmd, login *pam.Session, files ...*os.File) (err error) {
	if login == nil {
		err = keyring.Do(func() error {
			keyring.Adopt()
			return cmd.Start()
		})
		if err == nil {
			p.pid, p.wait = cmd.Process.Pid, func() (byte, syscall.Signal) { return waitFor(cmd) }
		}
		return err
	}
	p.wait = login.Wait
	p.pid, err = login.Start(&pam.Program{
		Path: cmd.Path, Argv: cmd.Args, Env: cmd.Env, Dir: cmd.Dir, Terminal: p.terminal != nil,
	}, files...)
	if err == nil {
		go func() { // su reaps it, and may take long to end then
			<-login.Over()
			p.setReaped()
		}()
	}
	return err
}

func (p *Process) setReaped() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reaped = true
}

func waitFor(cmd *exec.Cmd) (status byte, killed syscall.Signal) {
	cmd.Wait() // ProcessState has what it returns
	state := cmd.ProcessState
	if state == nil {
		return 255, 0 // reaped elsewhere
	}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return byte(128 + int(ws.Signal())), ws.Signal()
	}
	return byte(state.ExitCode()), 0
}

func startError(cmd *exec.Cmd, err error) error {
	var pathErr *os.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err
	}
	return fmt.Errorf("start %s: %w", cmd.Path, err)
}

// Wait waits for the program's first process.
func (p *Process) Wait() (status byte, killed syscall.Signal) {
	status, killed = p.wait()
	p.setReaped()
	return status, killed
}

// Ports returns the ports at which processes of a terminal's session listen, as package listening finds them.
func (p *Process) Ports() []uint16 {
	p.mu.Lock()
	gone := p.reaped || p.terminal == nil
	p.mu.Unlock()
	if gone {
		return nil
	}
	p.looking.Lock()
	defer p.looking.Unlock()
	return p.listening.Ports(p.pid)
}

func (p *Process) Stdin() io.WriteCloser { return p.stdin }
func (p *Process) Stdout() io.ReadCloser { return p.stdout }
func (p *Process) Stderr() io.ReadCloser { return p.stderr }
func (p *Process) Drained(n uint64) bool { return p.terminal == nil || p.terminal.drained(n) }

// Close also makes the kernel hang up the processes that are left on the terminal.
func (p *Process) Close() {
	p.stdin.Close()
	p.stdout.Close()
	if p.stderr != nil {
		p.stderr.Close()
	}
}

// Signals are those that a client may send, by their names in RFC 4254, 6.10.
var Signals = map[string]syscall.Signal{
	"ALRM": syscall.SIGALRM,
	"HUP":  syscall.SIGHUP,
	"INT":  syscall.SIGINT,
	"KILL": syscall.SIGKILL,
	"QUIT": syscall.SIGQUIT,
	"TERM": syscall.SIGTERM,
	"USR1": syscall.SIGUSR1,
	"USR2": syscall.SIGUSR2,
}

// Signal sends a signal to the processes in the foreground of the program's
// terminal, or to all of its first process group.
func (p *Process) Signal(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return
	}
	group := p.pid
	if p.terminal != nil {
		control(p.terminal.File, func(fd int) error {
			foreground, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
			if err == nil && foreground > 1 {
				group = foreground
			}
			return err
		})
	}
	syscall.Kill(-group, sig)
}

// Hangup sends a signal to the foreground and to the group of the first process, as the
// kernel does when a terminal is closed. If the first process has ended, SIGKILL closes
// the streams, which processes that it left behind may hold.
func (p *Process) Hangup(sig syscall.Signal) {
	p.Signal(sig)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !p.reaped:
		syscall.Kill(-p.pid, sig)
		syscall.Kill(-p.pid, syscall.SIGCONT)
	case sig == syscall.SIGKILL:
		p.Close()
	}
}

func (p *Process) Resize(s wire.Size) error {
	if p.terminal == nil {
		return nil
	}
	return control(p.terminal.File, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{
			Row: s.Rows, Col: s.Cols, Xpixel: s.XPixel, Ypixel: s.YPixel,
		})
	})
}
