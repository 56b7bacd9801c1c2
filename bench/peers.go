//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/bench/result"
	"github.com/quicterm/quicterm/bench/rig"
)

// A peer is a program that is compared with others, and the command that tells its
// version.
type peer struct {
	program
	version []string
}

var peers = []peer{
	{quictermProgram{}, nil},
	{sshProgram{}, []string{"ssh", "-V"}},
	{moshProgram{}, []string{"mosh", "--version"}},
	{etProgram{}, []string{"et", "--version"}},
	{tsshProgram{tsshQUIC}, []string{"tssh", "-V"}},
	{tsshProgram{tsshKCP}, []string{"tssh", "-V"}},
}

// comparedIn are the scenarios that programs are compared in.
var comparedIn = []string{
	"typing, no loss",
	"typing, 5 % loss",
	"typing, 29 % loss",
	"another address",
	"the NAT forgets",
	"black hole of 3 s",
	"outage of 30 s while output runs",
	"Ctrl-C behind a flood, 1 Mbit/s",
	"compiler log, 2 Mbit/s",
	"50 MB of text, no limit",
	"idle",
}

func peersCommand(running *measurements) *cobra.Command {
	p := newProduction(running)
	p.compare = true
	var only []string
	c := &cobra.Command{
		Use:   "peers",
		Short: "Play scenarios with quicterm, ssh, mosh, et and tssh in turn, and print one table",
		Long: `Play scenarios with quicterm, and with those of OpenSSH, mosh, Eternal Terminal and
tssh that are installed. They run in network namespaces, one after the other, each over
the same emulated network. Needs Linux and root.

A program that cannot do what a scenario asks for gets "never", and why. What was played
while this process could not run for 20 ms is played again, at most twice, and else is
busy: not to be believed. Every figure goes to a file as soon as it is measured. Takes
about five minutes for each program.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := rig.CanNamespace(); err != nil {
				return fmt.Errorf("cannot compare programs here: %w", err)
			}
			present, err := installed(c.OutOrStdout(), only)
			if err != nil {
				return err
			}
			var turns []turn
			for _, s := range p.chosen() {
				if !slices.Contains(comparedIn, s.name) {
					continue
				}
				for _, what := range present {
					turns = append(turns, turn{s, what, nil})
				}
			}
			if p.list {
				return p.print(c.OutOrStdout(), turns)
			}
			fmt.Fprintf(c.OutOrStdout(), "TCP's congestion control is %s.\n", defaultTCPControl())
			before := []prelude{{"emulator", func() []result.Record { return p.checkEmulator("namespaces", netnsTestLink) }}}
			const inTurn = 1
			return p.perform(c.OutOrStdout(), newNetnsStage, before, turns, inTurn)
		},
	}
	p.flags(c, "peers")
	c.Flags().StringSliceVar(&only, "programs", nil, "compare these `programs` only, by name")
	return c
}

// installed returns those of some programs (all if none are named) that can be compared
// here. It tells which they are, and why others are not.
func installed(w io.Writer, names []string) ([]program, error) {
	var present []program
	known := make(map[string]bool)
	for _, p := range peers {
		known[p.name()] = true
		if len(names) > 0 && !slices.Contains(names, p.name()) {
			continue
		}
		if why := p.missing(); why != "" {
			fmt.Fprintf(w, "%s is left out: %s.\n", p.name(), why)
			continue
		}
		present = append(present, p.program)
		if len(p.version) > 0 {
			fmt.Fprintf(w, "%s is %s.\n", p.name(), version(p.version))
		}
	}
	for _, n := range names {
		if !known[n] {
			return nil, fmt.Errorf("no program is called %q", n)
		}
	}
	if len(present) == 0 {
		return nil, fmt.Errorf("none of the programs is installed")
	}
	return present, nil
}

// version returns the first line that a command prints, if it does so soon.
func version(command []string) string {
	const soon = 5 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, _ := cmd.CombinedOutput()
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if line == "" {
		return "of an unknown version"
	}
	return line
}
