package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/quicterm/quicterm/quicterm/wire"
)

func watchCommand() *cobra.Command {
	opts := options{role: wire.RoleWatch}
	c := &cobra.Command{
		Use:   "watch [flags] [[user@]host [session]]",
		Short: "Watch a session, without a way to change it",
		Long: `Watch a session of a host, or of this machine if none is given; if it is not named and there is more
than one, choose from a list. What you type does not reach its program, and the size of your
terminal does not change its size: the server sees to that. The clients that are
attached are told that you watch. Of a screen that is larger than your terminal,
the arrow keys show another part. Ctrl-C leaves.`,
		Args: usage(cobra.MaximumNArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			if !term.IsTerminal(int(os.Stdout.Fd())) {
				return errors.New("watch needs a terminal; qt record writes what it would show into a file")
			}
			return runAttach(c, args, &opts)
		},
	}
	addTargetFlags(c, &opts)
	addPathFlags(c, &opts)
	addReplayFlag(c, &opts)
	addEscapeFlag(c, &opts)
	complete(c, &opts, hostNames, sessionNames)
	return c
}

// addReplayFlag adds the flag that says what to show of the output from before the attach.
func addReplayFlag(c *cobra.Command, opts *options) {
	opts.replay = wire.Replay{Kind: wire.ReplayScreen, Lines: 1000}
	c.Flags().Var((*replay)(&opts.replay), "replay", "what to show of the output from before: the `screen`, the screen after lines=N (default: 1000) lines, raw output, or none")
}

// maxReplay bounds the lines to ask for. Servers keep fewer.
const maxReplay = 1_000_000

// A replay is the value of a flag.
type replay wire.Replay

func (r *replay) Set(s string) error {
	lines, counted := strings.CutPrefix(s, "lines=")
	switch {
	case s == "screen":
		*r = replay{Kind: wire.ReplayScreen}
	case s == "raw":
		*r = replay{Kind: wire.ReplayRaw}
	case s == "none":
		*r = replay{Kind: wire.ReplayNone}
	case counted:
		n, err := strconv.ParseUint(lines, 10, 32)
		if err != nil || n > maxReplay {
			return fmt.Errorf("lines must be a number up to %d", maxReplay)
		}
		*r = replay{Kind: wire.ReplayScreen, Lines: uint32(n)}
	default:
		return errors.New("it must be screen, lines=N, raw or none")
	}
	return nil
}

func (r *replay) String() string { return "" }

func (r *replay) Type() string { return "screen" }
