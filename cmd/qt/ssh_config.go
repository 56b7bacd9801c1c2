package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Plain ssh reaches the sshd of a host through a session of qt:
//
//	ssh host.qt ─▶ qt ssh-proxy host.qt ═▶ qtd relay 22 ─▶ sshd
//
// The block in ssh's configuration is for a name of its own, so that qt's use of ssh for
// the host does not come back here.

// proxySuffix is what that name has after the name of the host.
const proxySuffix = ".qt"

func sshConfigCommand() *cobra.Command {
	var opts options
	c := &cobra.Command{
		Use:   "ssh-config [flags] [[user@]host]",
		Short: "Print a block for ~/.ssh/config, with which ssh host.qt goes through qt",
		Long: `Print a block for ssh's configuration. With it, "ssh host.qt" reaches the sshd of the
host through a session of qt. So do scp, sftp, rsync, VS Code, Ansible and forwarded
ports: their connections survive changes of network and outages.

With a host, the block has the user, keys and known host keys that your configuration
has for it. Without one, it is for all names that end in .qt, with ssh's defaults.
It belongs above "Host *" in ~/.ssh/config, because the first value of an option counts.`,
		Args: usage(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			b, err := patternBlock(&opts)
			if len(args) > 0 {
				b, err = hostBlock(c.Context(), args[0], &opts)
			}
			if err == nil {
				_, err = fmt.Fprint(c.OutOrStdout(), b)
			}
			return err
		},
	}
	addTargetFlags(c, &opts)
	complete(c, &opts, hostNames)
	return c
}

// proxyCommand returns the hidden command that the block has ssh run.
func proxyCommand() *cobra.Command {
	var opts options
	c := &cobra.Command{
		Use:    "ssh-proxy [flags] host.qt",
		Hidden: true,
		Args:   usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			host, ok := strings.CutSuffix(args[0], proxySuffix)
			if !ok {
				return fmt.Errorf("%s does not end in %s", args[0], proxySuffix)
			}
			h, err := reach.LoadSSH(c.Context(), host, &opts.Options)
			if err != nil {
				return err
			}
			opts.forward.none = true // ssh forwards
			err = runSession(c.Context(), host, &opts, &wire.Attach{Command: relayCommand(h.Port)})
			var signaled *reach.SignalError
			if errors.As(err, &signaled) { // ssh ends its proxies by SIGHUP
				return exitError(signaled.Status())
			}
			return err
		},
	}
	addTargetFlags(c, &opts)
	return c
}

// relayCommand returns the command that connects a session with sshd. A NAT may map another
// port to sshd's usual one.
func relayCommand(port uint16) string {
	ports := strconv.Itoa(int(port))
	if ports != "22" {
		ports += " 22"
	}
	return "sh -c 'PATH=$PATH:$HOME/.local/bin:${QUICTERM_BIN:-/usr/local/bin}; exec qtd relay " + ports + "'"
}
