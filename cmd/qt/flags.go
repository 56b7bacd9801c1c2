package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/cmd/qt/internal/peek"
	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A flagValue is a [pflag.Value] that a function sets.
type flagValue struct {
	set  func(string) error
	kind string // in the help
}

func (f flagValue) Set(s string) error { return f.set(s) }
func (f flagValue) String() string     { return "" }
func (f flagValue) Type() string       { return f.kind }

// oneOf is a flag with one of some values.
func oneOf(into *string, values ...string) flagValue {
	return flagValue{kind: values[0], set: func(s string) error {
		if !slices.Contains(values, s) {
			last := len(values) - 1
			return fmt.Errorf("it must be %s or %s", strings.Join(values[:last], ", "), values[last])
		}
		*into = s
		return nil
	}}
}

func (opts *options) setPort(s string) error {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 {
		return errors.New("a port is a number from 1 to 65535")
	}
	opts.Port = uint16(n)
	return nil
}

// addTargetFlags adds the flags that say which server to reach.
func addTargetFlags(c *cobra.Command, opts *options) {
	addPortFlag(c, opts)
	c.Flags().Var(oneOf(&opts.Bootstrap, "auto", "ssh", "direct"), "bootstrap",
		"how to reach the server first: `auto`, ssh or direct (default: the setting bootstrap)")
	addLoginFlags(c, opts)
}

func addPortFlag(c *cobra.Command, opts *options) {
	c.Flags().VarP(flagValue{set: opts.setPort, kind: "port"}, "port", "p",
		"UDP and TCP `port` of the daemon, which is reached directly (default: the setting port, 4433)")
}

// addLoginFlags adds those of them that ssh has too.
func addLoginFlags(c *cobra.Command, opts *options) {
	f := c.Flags()
	f.StringVarP(&opts.User, "login", "l", "", "log in as this `user`")
	f.StringArrayVarP(&opts.Identities, "identity", "i", nil, "private key `file` to offer; may be repeated")
	f.StringVarP(&opts.Config, "config", "F", "", "`file` to read instead of ssh's own configuration files")
	f.BoolVarP(&opts.Verbose, "verbose", "v", false, "log to standard error")
}

// addPathFlags adds the flags that say which paths a session uses.
func addPathFlags(c *cobra.Command, opts *options) {
	c.Flags().BoolVar(&opts.Redundant, "redundant", false,
		"send everything over two network interfaces (see the setting paths)")
}

func (opts *options) setReplay(s string) error {
	kinds := map[string]wire.Replay{
		"screen": {Kind: wire.ReplayScreen}, "raw": {Kind: wire.ReplayRaw}, "none": {Kind: wire.ReplayNone},
	}
	replay, ok := kinds[s]
	if lines, counted := strings.CutPrefix(s, "lines="); counted {
		n, err := strconv.ParseUint(lines, 10, 32)
		if err != nil || n > peek.All {
			return fmt.Errorf("lines must be a number up to %d", peek.All)
		}
		replay, ok = wire.Replay{Kind: wire.ReplayScreen, Lines: uint32(n)}, true
	}
	if !ok {
		return errors.New("it must be screen, lines=N, raw or none")
	}
	opts.replay = replay
	return nil
}

// addSessionFlags adds the flags of commands that show a session on the user's terminal.
func addSessionFlags(c *cobra.Command, opts *options) {
	addTargetFlags(c, opts)
	addPathFlags(c, opts)
	opts.replay = wire.Replay{Kind: wire.ReplayScreen, Lines: 1000}
	c.Flags().Var(flagValue{set: opts.setReplay, kind: "screen"}, "replay",
		"what to show of the output from before: the `screen`, the screen after lines=N "+
			"(default: 1000) lines, raw output, or none")
	c.Flags().VarP(flagValue{kind: "character", set: func(s string) error {
		opts.escape = s
		return configs.CheckEscapeChar(s)
	}}, "escape", "e", "`character` (or none) that begins an escape at the start of a line "+
		"(default: the setting escape_char, ~)")
}

// addPredictFlag adds the flag that says when keys show before the server answers.
func addPredictFlag(c *cobra.Command, opts *options) {
	c.Flags().Var(oneOf(&opts.predict, "adaptive", "always", "never"), "predict",
		"when keys show before the server answers: `adaptive` (where that takes long), always or never "+
			"(default: the setting predict)")
}
