package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/quicterm/client/bootstrap"
	"github.com/quicterm/quicterm/quicterm/client/install"
	"github.com/quicterm/quicterm/quicterm/client/sshconfig"
	"github.com/quicterm/quicterm/quicterm/terminal"
)

// masterTime is how long an ssh connection stays for the next login.
const masterTime = "30s"

// atHost calls f with a login to a host that runs install.Command, by ssh, or by our own login
// where there is no ssh program. If the login has failed, it returns why.
func atHost(ctx context.Context, arg string, opts *options, f func(install.Login) error) error {
	login, host, err := parseTarget(arg, opts)
	if err != nil {
		return err
	}
	config, err := sshconfig.Load(ctx, sshconfig.Query{
		Host: host, User: login, File: opts.config, Identities: opts.identities,
	})
	if err != nil {
		return err
	}
	t := &target{typed: arg, name: host, sshFile: opts.config}
	t.apply(config)
	if config.Connection.Shared {
		opts.master = ""
	}
	t.sshArgs = append(config.Connection.Undo, sshArgs(login, host, opts)...)
	if opts.master != "" {
		master := []string{"-o", "ControlMaster=auto", "-o", "ControlPersist=" + masterTime}
		t.sshArgs = append(master, t.sshArgs...)
	}
	ctx, stop := untilSignal(ctx, syscall.SIGINT, syscall.SIGQUIT)
	defer stop()
	words := &bootstrap.LastWords{Show: sayForSSH}
	if own := ownLoginTo(ctx, t, opts.log()); own != nil {
		err = byOwnLogin(ctx, own, words, f)
	} else {
		err = byProgram(ctx, t, opts, words, f)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if reason := words.Err(host); errors.Is(err, install.ErrLogin) && reason != nil {
		return reason
	}
	return err
}

func byOwnLogin(
	ctx context.Context, own bootstrap.OwnLogin, words *bootstrap.LastWords, f func(install.Login) error,
) error {
	stream, err := own(ctx, true, install.Command, words)
	if err != nil {
		return err
	}
	defer stream.Close()
	defer context.AfterFunc(ctx, func() { stream.Close() })()
	return f(stream.(install.Login))
}

// byProgram uses ssh as it runs a command on a host, without a terminal there and without what the
// user's configuration adds to a shell: forwarded ports, agents and displays, or another command.
// It compresses.
func byProgram(
	ctx context.Context, t *target, opts *options, words *bootstrap.LastWords, f func(install.Login) error,
) error {
	args := []string{"-T", "-C", "-a", "-x", "-o", "ClearAllForwardings=yes", "-o", "RemoteCommand=none"}
	if opts.verbose {
		args = append(args, "-v")
	}
	cmd := exec.CommandContext(ctx, "ssh", append(append(args, t.sshArgs...), install.Command)...)
	cmd.Stderr = words
	cmd.WaitDelay = time.Second // a master of ControlPersist keeps standard error open
	d, closeDialog, err := openDialog()
	if err != nil { // then nobody is asked, or ssh does it
		l, err := install.Start(cmd)
		if err != nil {
			return err
		}
		defer l.Close()
		return f(l)
	}
	defer closeDialog()
	d.Attach(cmd)
	l, err := install.Start(cmd)
	if err != nil {
		return err
	}
	relayed := make(chan struct{})
	go func() {
		defer close(relayed)
		d.Relay(words.Hear)
	}()
	err = f(l)
	l.Close()
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
