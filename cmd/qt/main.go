// Command qt opens terminal sessions that survive network changes.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/version"
)

func main() {
	// quic-go would log to the terminal that a program is drawing on.
	os.Setenv("QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING", "1")
	os.Exit(run(os.Args[1:]))
}

// exitError ends qt with the exit status of a remote command.
type exitError int

func (exitError) Error() string { return "the remote command failed" }

// failure is the exit status for an error of qt itself, as of ssh.
const failure = 255

func run(args []string) int {
	ctx, stop := reach.UntilSignal(context.Background(), syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	root := command()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if unknown := unknownCommand(root, args); err != nil && unknown != nil {
		err = unknown
	}
	var exit exitError
	var signaled *reach.SignalError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return int(exit)
	case errors.As(err, &signaled):
		reach.Complain(signaled)
		return signaled.Status()
	}
	reach.Complain(err)
	return failure
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "qt",
		Short:         "Terminal sessions that survive network changes, sleep and restarts",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version.String(),
	}
	root.SetVersionTemplate(reach.Software() + "\n")
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(connectCommand(), attachCommand(), watchCommand(), peekCommand(), listCommand(), killCommand(),
		renameCommand(), clearCommand(), revokeCommand(), statusCommand(), doctorCommand(), installCommand(),
		sshConfigCommand(), forwardCommand(), sftpCommand(), copyCommand(), getCommand(), proxyCommand(), recordCommand(), integrationCommand(), runCommand(),
		sendCommand(), waitCommand(), tailCommand(), eventsCommand(), mcpCommand(), webCommand(), devicesCommand(), shareCommand(), sharesCommand(), &cobra.Command{
			Use:   "version",
			Short: "Print the version",
			Args:  cobra.NoArgs,
			RunE: func(c *cobra.Command, _ []string) error {
				_, err := fmt.Fprintln(c.OutOrStdout(), reach.Software())
				return err
			},
		})
	return root
}

// unknownCommand returns an error if the first word of the arguments names no command. It names those that are like it.
func unknownCommand(root *cobra.Command, args []string) error {
	word := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "-") })
	if _, _, err := root.Find(args); err == nil || word < 0 {
		return nil
	}
	like := root.SuggestionsFor(args[word])
	if len(like) == 0 {
		return reach.WithHint(fmt.Errorf("unknown command %q", args[word]), "qt --help lists the commands")
	}
	return fmt.Errorf("unknown command %q: did you mean %s?", args[word], strings.Join(like, " or "))
}

func flagError(c *cobra.Command, err error) error {
	return reach.WithHint(err, "%s --help lists the flags", c.CommandPath())
}

// usage returns a check of arguments whose error shows the usage.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if check(c, args) != nil {
			return fmt.Errorf("wrong number of arguments, %d: use %s", len(args), c.UseLine())
		}
		return nil
	}
}
