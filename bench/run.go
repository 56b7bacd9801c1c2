//go:build linux

package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/bench/result"
	"github.com/quicterm/quicterm/bench/rig"
)

func runCommand(running *measurements) *cobra.Command {
	p := &player{all: running}
	var only string
	var quick, list bool
	c := &cobra.Command{
		Use:   "run",
		Short: "Play all scenarios with quicterm, and print one table",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := os.MkdirTemp("", "qt")
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			running.removeOnSignal(dir)
			if err := rig.Build(dir); err != nil {
				return err
			}
			p.bin, p.commit, p.machine = dir, result.Commit(), result.ThisMachine()
			for _, s := range scenarios {
				if !strings.Contains(s.name, only) || quick && !s.quick {
					continue
				}
				if list {
					fmt.Fprintln(c.OutOrStdout(), s.name)
					continue
				}
				for _, r := range p.play(newProxyStage, quictermProgram{}, s, s.bounds) {
					fmt.Fprintf(c.OutOrStdout(), "%s %s p50 %.1f p90 %.1f p99 %.1f max %.1f %s: %s %s %s stall %.1f\n", r.Scenario, r.Metric,
						r.Quantile(0.5), r.Quantile(0.9), r.Quantile(0.99), r.Quantile(1), r.Unit, r.Bound, r.Verdict, r.Why, r.StallMS)
				}
			}
			return nil
		},
	}
	c.Flags().StringVar(&only, "only", "", "play only scenarios that have this `text` in their names")
	c.Flags().BoolVar(&quick, "quick", false, "play few scenarios")
	c.Flags().BoolVar(&list, "list", false, "list the scenarios")
	c.Flags().Uint64Var(&p.seed, "seed", 1, "what the losses of the links are made from")
	return c
}
