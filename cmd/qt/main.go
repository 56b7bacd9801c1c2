// Command qt opens terminal sessions that stay.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

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

// failure is the exit status for a failure of ours, as ssh has it.
const failure = 255

func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	root := command()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var exit exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return int(exit)
	}
	complain(err)
	return failure
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "qt",
		Short:         "A terminal that stays: sessions that survive whatever the network does",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(connectCommand(), attachCommand(), listCommand(), killCommand(), statusCommand(), &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		Run:   func(c *cobra.Command, _ []string) { c.OutOrStdout().Write([]byte(software() + "\n")) },
	})
	return root
}

// usage checks arguments, and says of wrong ones what was expected.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if check(c, args) != nil {
			return fmt.Errorf("wrong number of arguments, %d: use %s", len(args), c.UseLine())
		}
		return nil
	}
}

func software() string { return "qt " + version.String() }
