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
)

// masterTime is how long an ssh connection stays for the next login.
const masterTime = "30s"

// atHost calls f with an ssh process that runs install.Command on a host, and asks on the terminal by itself. If the
// login has failed, it returns why.
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
	cmd := exec.CommandContext(ctx, "ssh", append(args, install.Command)...)
	cmd.Stderr = words
	cmd.WaitDelay = time.Second // a master of ControlPersist keeps standard error open
	p, err := install.Start(cmd)
	if err == nil {
		err = f(p)
		p.Close()
	}
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

// endMaster ends an ssh connection that another login could have used, if there is one.
func endMaster(socket string) {
	if _, err := os.Stat(socket); err == nil {
		exec.Command("ssh", "-F", "none", "-O", "exit", "-o", "ControlPath="+socket, "--", "none").Run()
	}
}
