//go:build linux

package main

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/program"
	"github.com/quicterm/quicterm/bench/scenario"
	"github.com/quicterm/quicterm/bench/suite"
	"github.com/quicterm/quicterm/bench/topology"
)

const (
	standardLimit = 5 * time.Minute
	quickLimit    = 2 * time.Minute
)

// resultFolder gets the files of results. It is ignored by git: bench report takes what is to be published.
const resultFolder = "bench/out"

// compared are the scenarios in which programs are compared.
var compared = []string{
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
	"connect to the prompt",
}

func runCommand(group *measure.Group) *cobra.Command {
	s := &suite.Suite{Group: group, Places: suite.SideBySide}
	var only, programs []string
	var list bool
	c := &cobra.Command{
		Use:   "run",
		Short: "Measure scenarios, and write one table",
		Long: `Measure scenarios with quicterm: the released programs on terminals, read through a
terminal emulator, over emulated links.

The standard suite takes five minutes. --only names others, or any scenarios:
  roam      two interfaces, outages, sleep, chaos: 20 minutes, needs root
  feel      Ctrl-C, slow links, much output beside ssh: 5 minutes
  session   memory, traffic, connecting, restarts of the daemon: 6 minutes
  reach     hosts that only ssh reaches, networks that block UDP: 4 minutes, needs root and sshd
  screen    attaching to vim, 50 watchers: a minute
  attack    resumes, logins and typing while hostile clients do their worst: a minute, mostly needs root
  abuse     typing and logins while 500 addresses flood the daemon: two minutes, needs root
  scale     how cost grows with sessions, rings, round trips, and clients that come back at once: 15 minutes
  lean      bytes, CPU time and context switches beside ssh and mosh: ten minutes, mostly needs root
  bulk      copies over fast paths that lose packets, and beside TCP: eight minutes, needs root and sshd
  all       everything
--quick measures a small part of all suites, in less than two minutes. Scenarios that need
network namespaces, other accounts or file systems are skipped without root, and those that
do not fit the free memory.

--peers measures those of OpenSSH, mosh, Eternal Terminal and tssh that are installed as well, in
the scenarios that all can do, one after the other in network namespaces, as root. A program that
cannot do what a scenario asks for gets "never", and why.

If a bound is missed while this process was stalled for 20 ms, the scenario is measured
again, at most twice and only if there is time; otherwise it is busy: not to be believed.
Figures of --peers are measured again for any stall. Every figure goes to a file as soon as it is
measured.

The exit status is 0 also if bounds are missed, unless --strict is set.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			w, name, standard := c.OutOrStdout(), "latest", len(only) == 0 && !s.ComparesPrograms
			switch {
			case s.ComparesPrograms && len(only) == 0:
				only, name = compared, "peers"
			case s.ComparesPrograms:
				name = "peers"
			case len(only) == 1 && scenario.IsSuite(only[0]):
				name = only[0]
			}
			if s.Out == "" {
				s.Out = filepath.Join(resultFolder, name+".jsonl")
			}
			selected := scenario.Select(only, s.Quick)
			if s.ComparesPrograms {
				var err error
				if selected, err = peers(w, selected, programs); err != nil {
					return err
				}
				s.Places = 1
			}
			if len(selected) == 0 {
				return fmt.Errorf("no scenario has %s in its name; bench run --only all --list shows all", quoted(only))
			}
			if list {
				return s.List(w, selected)
			}
			selected = runnable(w, selected)
			switch {
			case s.Quick:
				s.Limit = quickLimit
			case standard:
				s.Limit = standardLimit
			}
			return s.Run(w, selected)
		},
	}
	c.Flags().StringArrayVar(&only, "only", nil,
		"measure the suite of this name, or the scenarios that have this `text` in their names; may be repeated")
	c.Flags().StringVar(&s.Out, "out", "", "append results to this `file` rather than one in "+resultFolder)
	c.Flags().BoolVar(&list, "list", false, "only list the scenarios and their bounds")
	c.Flags().BoolVar(&s.Strict, "strict", false, "fail if a bound is missed")
	c.Flags().Uint64Var(&s.Seed, "seed", 1, "seed of the links' losses")
	c.Flags().BoolVar(&s.Quick, "quick", false, "measure few scenarios, with bounds that a busy machine keeps as well")
	c.Flags().BoolVar(&s.ComparesPrograms, "peers", false, "measure the other programs that are installed as well")
	c.Flags().StringSliceVar(&programs, "programs", nil, "compare these `programs` only, by name")
	return c
}

// peers returns the scenarios in which programs are compared, once for each program that is installed.
func peers(w io.Writer, all []scenario.Scenario, names []string) (selected []scenario.Scenario, err error) {
	if err := topology.CheckNamespaces(); err != nil {
		return nil, fmt.Errorf("programs cannot be compared here: %w", err)
	}
	present, err := program.Installed(w, names)
	if err != nil {
		return nil, err
	}
	for _, sc := range all {
		if !slices.Contains(compared, sc.Name) {
			continue
		}
		for _, p := range present {
			sc.Program, sc.Rivals = p, nil
			selected = append(selected, sc)
		}
	}
	fmt.Fprintf(w, "TCP's congestion control is %s.\n", topology.CongestionControl())
	return selected, nil
}

// runnable returns the scenarios that can be measured here, and says which are skipped.
func runnable(w io.Writer, all []scenario.Scenario) (can []scenario.Scenario) {
	namespaces := topology.CheckNamespaces()
	skipped := make(map[string]int) // by why
	for _, s := range all {
		var err error
		if s.Namespaces {
			err = namespaces
		}
		if err == nil && s.Needs != nil {
			err = s.Needs()
		}
		if err == nil {
			can = append(can, s)
		} else {
			skipped[err.Error()]++
		}
	}
	for _, why := range slices.Sorted(maps.Keys(skipped)) {
		fmt.Fprintf(w, "%d of %d scenarios are skipped: %s.\n", skipped[why], len(all), why)
	}
	return can
}

// quoted joins texts for an error.
func quoted(texts []string) string { return `"` + strings.Join(texts, `" or "`) + `"` }
