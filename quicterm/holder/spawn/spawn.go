//go:build linux || darwin

// Package spawn starts the processes of holders, which are this executable again, and says what they are given.
package spawn

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/quicterm/holder/socket"
	"github.com/quicterm/quicterm/quicterm/machine/keyring"
	"github.com/quicterm/quicterm/quicterm/machine/memory"
	"github.com/quicterm/quicterm/quicterm/machine/pam"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Command is the argument that makes the daemon's executable a holder.
const Command = "hold"

// OwnLogFlag is the flag of Command that makes it log to a file of its account: it must
// not write to the log of a daemon of root.
const OwnLogFlag = "--own-log"

const (
	// ReplyFD is the descriptor on which a new holder reports that it has started, or why not.
	ReplyFD = 3

	// SocketFD is the descriptor of the socket that the daemon has bound, if Launch names one.
	SocketFD = 4
)

const (
	// Time is how long a holder may take to start.
	Time = 4 * socket.AnswerTime

	// KillGrace is how long a program has between SIGHUP and SIGKILL, and su between SIGTERM and SIGKILL: it gives its
	// child 2 seconds.
	KillGrace = 3 * time.Second
)

// A Process says how the process of a holder is made. The zero value is one of our account, which
// logs to our standard error.
type Process struct {
	Credential *syscall.Credential   // of another account, or nil
	Login      *Login                // the session of PAM in which the program runs, or nil
	Socket     *os.File              // bound to the path in Launch, or nil
	Args       []string              // further arguments
	Start      func(*exec.Cmd) error // used in place of keyring.Start, or nil
	Move       func(pid int)         // called before the program of the session runs, or nil
}

// A Login names a session of PAM that is opened for a program: see [pam.OpenArgs].
type Login struct {
	Su      string // path of su
	Account string
}

// Session starts the holder of a session as a process of its own, which outlives this one, and blocks until
// its program runs and its socket listens.
// If it returns a process id, even with an error, the caller waits for that process.
func Session(ctx context.Context, launch *wire.Launch, p Process) (pid int, err error) {
	pid, reply, err := Task(ctx, launch, p)
	if err != nil {
		return pid, err
	}
	failed := new(wire.Error)
	if err := reply.Decode(failed); err == nil {
		if p.Login != nil { // PAM may still work on the session, or close it
			syscall.Kill(-pid, syscall.SIGTERM)
		}
		return pid, errors.New(failed.Text)
	}
	return pid, reply.Decode(new(wire.Started))
}

// Task starts a process of the account that does what the launch says, such as to list the records of lost sessions, and
// returns its answer: an Error shows a record with CodeLost. It blocks until then, at most for Time. The caller waits
// for the process as after Session.
func Task(ctx context.Context, launch *wire.Launch, p Process) (pid int, reply wire.Message, err error) {
	if err := checkParent(os.Args); err != nil {
		return 0, reply, err
	}
	exe, err := Executable()
	if err != nil {
		return 0, reply, err
	}
	m, err := wire.New(launch)
	if err != nil {
		return 0, reply, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return 0, reply, err
	}
	defer r.Close()
	args, credential := append([]string{Command}, p.Args...), p.Credential
	if p.Login != nil {
		args, credential = pam.OpenArgs(p.Login.Su, p.Login.Account, p.Credential, args), nil
	}
	cmd := exec.Command(exe, args...)
	cmd.Args[0] = "qtd"
	cmd.Dir = "/"
	cmd.Env = []string{}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 0, reply, err
	}
	if p.Credential == nil {
		cmd.Stderr = os.Stderr
	}
	cmd.ExtraFiles = []*os.File{w}
	if p.Socket != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, p.Socket)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: credential}
	if p.Start == nil {
		p.Start = keyring.Start
	}
	err = p.Start(cmd)
	w.Close()
	if err != nil {
		stdin.Close()
		return 0, reply, fmt.Errorf("start holder: %w", err)
	}
	pid = cmd.Process.Pid
	// Only then the holder starts the program, which inherits its protection and control group.
	err = memory.Unprotect(pid)
	if err == nil && p.Move != nil {
		p.Move(pid)
	}
	if err != nil {
		stdin.Close()
		cmd.Process.Kill()
		return pid, reply, fmt.Errorf("start holder: %w", err)
	}
	go func() {
		wire.Write(stdin, m) // fails if the process has ended: then there is no reply
		stdin.Close()
	}()
	defer cmd.Process.Release()
	r.SetReadDeadline(time.Now().Add(Time))
	stop := context.AfterFunc(ctx, func() { r.SetReadDeadline(time.Now()) })
	defer stop()
	reply, err = wire.Read(r, wire.MaxMessage)
	if err != nil {
		if p.Login != nil { // then su ends what it has started
			syscall.Kill(-pid, syscall.SIGTERM)
			time.Sleep(KillGrace)
		}
		syscall.Kill(-pid, syscall.SIGKILL)
		return pid, reply, fmt.Errorf("holder did not start: %w", err)
	}
	return pid, reply, nil
}

// readKeysCommand is the argument that makes the daemon's executable a reader of keys (package keyfile).
const readKeysCommand = "read-keys"

// checkParent returns an error if this process is itself a daemon's child. Then its program ignores the argument by
// which it was started, and children would start children without end.
func checkParent(args []string) error {
	if len(args) > 1 && slices.Contains([]string{Command, readKeysCommand, pam.OpenCommand, pam.RunCommand}, args[1]) {
		return fmt.Errorf("the program does not do what its argument %s says: "+
			"see Main in the packages holder and keyfile", args[1])
	}
	return nil
}

// Executable returns the file of this process's program, or the program as it runs if the file is gone.
func Executable() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(exe); err != nil {
		return "/proc/self/exe", nil
	}
	return exe, nil
}
