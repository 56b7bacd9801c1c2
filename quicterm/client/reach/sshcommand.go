package reach

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/quicterm/client/bootstrap"
	"github.com/quicterm/quicterm/quicterm/client/install"
	"github.com/quicterm/quicterm/quicterm/terminal"
)

// batchTimeout is how many seconds a server has to answer a login that asks nothing. Another one may come after it.
const batchTimeout = "15"

// RunAt calls f with an ssh process that runs a command on a host. If the login has failed, which the error of f says, it
// returns why. Unless ask, ssh asks the user for nothing.
func RunAt(ctx context.Context, arg string, opts *Options, ask bool, command string, f func(*install.Process) error) error {
	login, host, err := ParseTarget(arg, opts)
	if err != nil {
		return err
	}
	config, err := LoadSSH(ctx, arg, opts)
	if err != nil {
		return err
	}
	// As ssh runs a command on a host, without a terminal there and without what the user's configuration
	// adds to a shell: forwarded ports, agents and displays, or another command. It compresses.
	args := []string{"-T", "-C", "-a", "-x", "-o", "ClearAllForwardings=yes", "-o", "RemoteCommand=none"}
	if !ask {
		args = append(args, "-o", "BatchMode=yes", "-o", "ConnectTimeout="+batchTimeout)
	}
	if opts.Verbose {
		args = append(args, "-v")
	}
	args = append(append(args, config.Undo...), SSHArgs(login, host, opts)...)
	ctx, stop := UntilSignal(ctx, syscall.SIGINT, syscall.SIGQUIT)
	defer stop()
	words := &bootstrap.LastWords{Show: func(line string) { fmt.Fprintln(os.Stderr, line) }}
	err = withDialog(exec.CommandContext(ctx, "ssh", append(args, command)...), words, ask, f)
	switch reason := words.Err(host); {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, exec.ErrNotFound):
		return bootstrap.ErrNoSSH
	case errors.Is(err, install.ErrLogin) && reason != nil:
		return reason
	}
	return err
}

// withDialog starts an ssh process, on a terminal of its own if it may ask and this process has one, and calls f.
func withDialog(cmd *exec.Cmd, words *bootstrap.LastWords, ask bool, f func(*install.Process) error) error {
	open := bootstrap.ErrorPipe
	if ask {
		open = openDialog
	}
	d, err := open()
	if err != nil {
		return err
	}
	defer d.Close()
	d.Attach(cmd)
	cmd.WaitDelay = time.Second // a master of ControlPersist keeps standard error open
	p, err := install.Start(cmd)
	if err != nil {
		return err
	}
	relayed := make(chan struct{})
	go func() {
		defer close(relayed)
		d.Relay(words.Hear)
	}()
	err = f(p)
	p.Close()
	select {
	case <-relayed:
	case <-time.After(cmd.WaitDelay):
		d.Close()
		<-relayed
	}
	return err
}

// A ttyDialog is a dialog with the terminal that it is on.
type ttyDialog struct {
	bootstrap.Dialog
	tty *terminal.TTY
}

// Close closes both.
func (d ttyDialog) Close() error {
	defer d.tty.Close()
	return d.Dialog.Close()
}

// openDialog returns a dialog on the terminal of this process. Without one, ssh asks nobody, or by itself.
func openDialog() (bootstrap.Dialog, error) {
	tty, err := terminal.OpenTTY()
	if err != nil {
		return bootstrap.ErrorPipe()
	}
	d, err := terminal.NewDialog(tty)
	if err != nil {
		tty.Close()
		return bootstrap.ErrorPipe()
	}
	return ttyDialog{d, tty}, nil
}
