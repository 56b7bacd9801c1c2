package main

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
	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/terminal"
)

// masterTime is how long an ssh connection stays for the next login.
const masterTime = "30s"

// atHost calls f with an ssh process that runs install.Command on a host. If the login has failed, it
// returns why.
func atHost(ctx context.Context, arg string, opts *options, f func(*install.Process) error) error {
	login, host, err := reach.ParseTarget(arg, &opts.Options)
	if err != nil {
		return err
	}
	config, err := reach.LoadSSH(ctx, arg, &opts.Options)
	if err != nil {
		return err
	}
	if config.Shared {
		opts.Master = ""
	}
	// As ssh runs a command on a host, without a terminal there and without what the user's configuration
	// adds to a shell: forwarded ports, agents and displays, or another command. It compresses.
	args := []string{"-T", "-C", "-a", "-x", "-o", "ClearAllForwardings=yes", "-o", "RemoteCommand=none"}
	if opts.Verbose {
		args = append(args, "-v")
	}
	if opts.Master != "" {
		args = append(args, "-o", "ControlMaster=auto", "-o", "ControlPersist="+masterTime)
	}
	args = append(append(args, config.Undo...), reach.SSHArgs(login, host, &opts.Options)...)
	ctx, stop := reach.UntilSignal(ctx, syscall.SIGINT, syscall.SIGQUIT)
	defer stop()
	words := &bootstrap.LastWords{Show: func(line string) { fmt.Fprintln(os.Stderr, line) }}
	err = withDialog(exec.CommandContext(ctx, "ssh", append(args, install.Command)...), words, f)
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

// withDialog starts an ssh process, on a terminal of its own if this process has one, and calls f.
func withDialog(cmd *exec.Cmd, words *bootstrap.LastWords, f func(*install.Process) error) error {
	cmd.Stderr = words
	cmd.WaitDelay = time.Second // a master of ControlPersist keeps standard error open
	d, closeDialog, noDialog := openDialog()
	if noDialog == nil { // else ssh asks nobody, or by itself
		defer closeDialog()
		d.Attach(cmd)
	}
	p, err := install.Start(cmd)
	if err != nil {
		return err
	}
	defer p.Close()
	if noDialog != nil {
		return f(p)
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

// endMaster ends an ssh connection that another login could have used, if there is one.
func endMaster(socket string) {
	if _, err := os.Stat(socket); err == nil {
		exec.Command("ssh", "-F", "none", "-O", "exit", "-o", "ControlPath="+socket, "--", "none").Run()
	}
}

// openDialog returns a dialog on the terminal of this process.
func openDialog() (d *terminal.Dialog, closeAll func(), err error) {
	tty, err := terminal.OpenTTY()
	if err != nil {
		return nil, nil, err
	}
	if d, err = terminal.NewDialog(tty); err != nil {
		tty.Close()
		return nil, nil, err
	}
	return d, func() {
		d.Close()
		tty.Close()
	}, nil
}
