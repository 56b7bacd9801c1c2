package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/quicterm/quicterm/quicterm/bootstrap"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// sshCommand returns ssh as it runs a command on a host, without a terminal there and
// without what the user's configuration adds to a shell: forwarded ports, agents and
// displays, or another command. It compresses.
func sshCommand(ctx context.Context, arg string, opts *options, command string) (*exec.Cmd, error) {
	login, host, err := parseTarget(arg, opts)
	if err != nil {
		return nil, err
	}
	program, err := exec.LookPath("ssh")
	if err != nil {
		return nil, bootstrap.ErrNoSSH
	}
	args := []string{"-T", "-C", "-a", "-x", "-o", "ClearAllForwardings=yes", "-o", "RemoteCommand=none"}
	if login != "" {
		args = append(args, "-l", login)
	}
	if opts.config != "" {
		args = append(args, "-F", opts.config)
	}
	for _, file := range opts.identities {
		args = append(args, "-i", file)
	}
	if opts.verbose {
		args = append(args, "-v")
	}
	cmd := exec.CommandContext(ctx, program, append(args, "--", host, command)...)
	cmd.Stderr = &printable{to: os.Stderr}
	cmd.WaitDelay = time.Second // a master of ControlPersist keeps standard error open
	return cmd, nil
}

// maxShown bounds a line of ssh that is shown, in bytes.
const maxShown = 1000

// A printable writes lines to a terminal, as far as they can be printed: among the messages of
// ssh are those of the host. A longer line continues on the next one.
type printable struct {
	to   io.Writer
	line []byte // without its end
}

func (p *printable) Write(b []byte) (int, error) {
	for _, c := range b {
		if c != '\n' {
			p.line = append(p.line, c)
		}
		if c == '\n' || len(p.line) == maxShown {
			fmt.Fprintln(p.to, wire.Printable(strings.TrimSuffix(string(p.line), "\r"), maxShown))
			p.line = p.line[:0]
		}
	}
	return len(b), nil
}
