//go:build linux || darwin

package holder

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/quicterm/machine/keyring"
	"github.com/quicterm/quicterm/quicterm/machine/pam"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A process is a Program that is a process, with those that it starts.
type process struct {
	pid      int // of its first process
	wait     func() (status byte, killed syscall.Signal)
	terminal *os.File     // the streams of a program on a terminal
	output   *burstReader // of the terminal
	stdin    *os.File     // without a terminal
	stdout   *os.File
	stderr   *os.File

	shell bool // it is a login shell, in which a person types

	mu         sync.Mutex
	foreground foreground
	reaped     bool // another process may have its id now
}

func startProgram(launch *wire.Launch, login *pam.Session) (Program, error) {
	cmd := &exec.Cmd{Path: launch.Path, Args: launch.Argv, Env: launch.Env, Dir: launch.Dir}
	if cmd.Env == nil {
		cmd.Env = []string{} // nil would inherit ours
	}
	if !enterable(launch.Dir) {
		cmd.Dir = "/"
	}
	if launch.PTY {
		return startTerminal(cmd, launch, login)
	}
	return startPipes(cmd, login)
}

func enterable(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir() && unix.Access(dir, unix.X_OK) == nil
}

func startTerminal(cmd *exec.Cmd, launch *wire.Launch, login *pam.Session) (Program, error) {
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
	p := &process{terminal: terminal, output: output, shell: strings.HasPrefix(launch.Argv[0], "-")}
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

func startPipes(cmd *exec.Cmd, login *pam.Session) (Program, error) {
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
	p := &process{stdin: files[1], stdout: files[2], stderr: files[4]}
	theirs := []*os.File{files[0], files[3], files[5]}
	if err := p.begin(cmd, login, theirs...); err != nil {
		closeAll(files)
		return nil, startError(cmd, err)
	}
	closeAll(theirs)
	return p, nil
}

// begin starts a command that has the files as its standard files.
func (p *process) begin(cmd *exec.Cmd, login *pam.Session, files ...*os.File) (err error) {
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

func started(program Program) *wire.Started {
	s := new(wire.Started)
	if p, ok := program.(*process); ok && p.terminal != nil {
		control(p.terminal, func(fd int) (err error) {
			if s.Terminal, err = terminalNumber(fd); err == nil {
				s.Process = uint32(p.pid)
			}
			return err
		})
	}
	return s
}

func (p *process) setReaped() {
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
func (p *process) Wait() (status byte, killed syscall.Signal) {
	status, killed = p.wait()
	p.setReaped()
	return status, killed
}

func (p *process) Stdin() io.WriteCloser {
	if p.terminal != nil {
		return p.output
	}
	return p.stdin
}

func (p *process) Stdout() io.ReadCloser {
	if p.terminal != nil {
		return p.output
	}
	return growing(p.stdout)
}

func (p *process) Drained(n uint64) bool { return p.output == nil || p.output.drained(n) }

func (p *process) Stderr() io.ReadCloser { return p.stderr }

// Close also makes the kernel hang up the processes that are left on the terminal.
func (p *process) Close() {
	for _, f := range []*os.File{p.terminal, p.stdin, p.stdout, p.stderr} {
		if f != nil {
			f.Close()
		}
	}
}

// Signal sends a signal to the processes in the foreground of the program's
// terminal, or to all of its first process group.
func (p *process) Signal(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return
	}
	group := p.pid
	if p.terminal != nil {
		control(p.terminal, func(fd int) error {
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
func (p *process) Hangup(sig syscall.Signal) {
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

func (p *process) Resize(s wire.Size) error {
	if p.terminal == nil {
		return nil
	}
	return control(p.terminal, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{
			Row: s.Rows, Col: s.Cols, Xpixel: s.XPixel, Ypixel: s.YPixel,
		})
	})
}

// A Program is what runs in a session, with our ends of its streams. All methods except
// Wait and the streams return at once.
type Program interface {
	// On a terminal, Stdin and Stdout are the terminal, and Stderr is nil.
	Stdin() io.WriteCloser
	Stdout() io.ReadCloser
	Stderr() io.ReadCloser
	// Drained reports whether all that was printed on the terminal so far are the first n bytes
	// that Reads of Stdout have returned.
	Drained(n uint64) bool
	// Modes returns what a [wire.Hint] tells of the terminal, unless there is none or it was
	// closed.
	Modes(now time.Time) (flags wire.TerminalFlags, context uint16, ok bool)
	// Resize changes the size of the terminal and tells the program.
	Resize(wire.Size) error
	// Signal sends a signal to the processes in the foreground.
	Signal(syscall.Signal)
	// Hangup sends a signal to the whole program, and continues what is stopped.
	Hangup(syscall.Signal)
	// Wait blocks until the program ends. It returns the exit status as a shell has it,
	// and the signal that killed the program, or 0. It is called once.
	Wait() (status byte, killed syscall.Signal)
	// Close closes our ends of the streams: reads and writes that block fail.
	Close()
}
