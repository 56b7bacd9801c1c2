package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/quicterm/quicterm/quicterm/bootstrap"
)

// sshCommand returns ssh as it runs a command on a host, without a terminal there and
// without what the user's configuration adds to a shell: forwarded ports, agents and
// displays, or another command. It compresses. After its end, words has why it could not log in.
func sshCommand(ctx context.Context, arg string, opts *options, command string) (
	_ *exec.Cmd, words *bootstrap.LastWords, err error) {
	login, host, err := parseTarget(arg, opts)
	if err != nil {
		return nil, nil, err
	}
	program, err := exec.LookPath("ssh")
	if err != nil {
		return nil, nil, bootstrap.ErrNoSSH
	}
	args := []string{"-T", "-C", "-a", "-x", "-o", "ClearAllForwardings=yes", "-o", "RemoteCommand=none"}
	if opts.verbose {
		args = append(args, "-v")
	}
	cmd := exec.CommandContext(ctx, program, append(append(args, sshArgs(login, host, opts)...), command)...)
	words = &bootstrap.LastWords{Show: func(line string) { fmt.Fprintln(os.Stderr, line) }}
	cmd.Stderr = words
	cmd.WaitDelay = time.Second // a master of ControlPersist keeps standard error open
	return cmd, words, nil
}
