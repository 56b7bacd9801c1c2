//go:build linux

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func roamCommand(running *measurements) *cobra.Command {
	g := &roaming{
		all:     running,
		setting: make(chan struct{}, side),
		ahead:   make(chan struct{}, 1),
		turn:    make(chan struct{}, 1),
		apart:   make(chan struct{}, 1),
	}
	var only string
	c := &cobra.Command{
		Use:   "roam",
		Short: "Measure roaming: how long until a key is echoed after something happened to the network",
		Long: `Measure roaming: clients in network namespaces, each with two interfaces whose
round trips take 60 ms. Somebody types a key every 20 ms; the figures are the
median and the worst time from the event, or from the first key typed after it, to
the echo of that key. "At rest" is the time from key to echo before, and for outages
after. Each key must
be echoed, once, in order.

Takes about 15 minutes, or with --quick one. A new client has a second before
something happens to it. What was measured while this process could not run for
20 ms is measured again, and counted as busy; of outages, it is only counted.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := canRoam(); err != nil {
				fmt.Fprintf(c.OutOrStdout(), "skipped: %v\n", err)
				return nil
			}
			if g.quick {
				if !c.Flags().Changed("runs") {
					g.runs = 3
				}
				g.apart = make(chan struct{}, 3)
				fmt.Fprintln(c.OutOrStdout(), "quick: few samples, outages of 5 s, all may take twice as long")
			}
			return running.runRows(c.OutOrStdout(), only, [][]row{g.rows(only)})
		},
	}
	c.Flags().StringVar(&only, "only", "", "measure only what has this `text` in its name")
	c.Flags().IntVar(&g.runs, "runs", 20, "how often each is measured")
	c.Flags().Uint64Var(&g.seed, "seed", 1, "what chaos is made from")
	c.Flags().BoolVarP(&g.verbose, "verbose", "v", false, "print each sample")
	c.Flags().BoolVar(&g.quick, "quick", false, "measure all in less than a minute")
	return c
}

// rows returns the rows whose names contain a text.
func (g *roaming) rows(only string) []row {
	var rows []row
	for _, r := range roams {
		rows = append(rows, g.row(r))
	}
	if !g.quick {
		rows = append(rows, g.chaos())
	}
	for _, r := range outages {
		if g.quick {
			if r.outage > time.Minute && !r.quiet {
				continue // as the shorter one is
			}
			r.outage = 5 * time.Second
			r.name = strings.NewReplacer("30 s", "5 s", "10 min", "5 s").Replace(r.name)
		}
		if strings.Contains(r.name, only) {
			g.outages.Add(1)
			rows = append(rows, g.row(r))
		}
	}
	return rows
}
