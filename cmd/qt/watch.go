package main

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/terminal"
	"github.com/quicterm/quicterm/quicterm/wire"
)

func watchCommand() *cobra.Command {
	opts := options{role: wire.RoleWatch}
	c := &cobra.Command{
		Use:   "watch [flags] [user@]host session",
		Short: "Watch a session, without a way to change it",
		Long: `Watch a session. What you type does not reach its program, and the size of your
terminal does not change its size: the server sees to that. The clients that are
attached are told that you watch. Ctrl-C leaves.`,
		Args: usage(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error { return runAttach(c, args, &opts) },
	}
	addTargetFlags(c, &opts)
	addPathFlags(c, &opts)
	addReplayFlag(c, &opts)
	return c
}

// inRole returns what a terminal may do with a session in which its client has a role.
func inRole(s *client.Session, role wire.Role) terminal.Session {
	if role.ReadOnly() {
		return watched{s}
	}
	return s
}

// A watched session takes no input, and the user leaves it instead of ending it. The server would
// ignore it all.
type watched struct{ *client.Session }

func (w watched) TryWrite(b []byte) (int, error) {
	const ctrlC = 3
	if bytes.IndexByte(b, ctrlC) >= 0 {
		w.Leave()
	}
	return len(b), nil
}

func (w watched) Write(b []byte) (int, error) { return w.TryWrite(b) }
func (w watched) CloseWrite() error           { return nil }
func (w watched) Resize(wire.Size) error      { return nil }
func (w watched) Skip() error                 { return nil }
func (w watched) Hangup()                     { w.Leave() }

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
