//go:build linux

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/bench/result"
	"github.com/quicterm/quicterm/bench/rig"
)

// peers are the programs that are measured side by side.
var peers = []program{
	quictermProgram{}, sshProgram{}, moshProgram{}, etProgram{}, tsshProgram{tsshQUIC}, tsshProgram{tsshKCP},
}

func peersCommand(running *measurements) *cobra.Command {
	p := &player{all: running}
	var only string
	var programs []string
	c := &cobra.Command{
		Use:   "peers",
		Short: "Play scenarios with quicterm, ssh, mosh, et and tssh, and print one table",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := rig.CanNamespace(); err != nil {
				return err
			}
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
				if !strings.Contains(s.name, only) {
					continue
				}
				for _, what := range peers {
					if what.missing() != "" || len(programs) > 0 && !slices.Contains(programs, what.name()) {
						continue
					}
					for _, r := range p.play(newNetnsStage, what, s, nil) {
						fmt.Fprintf(c.OutOrStdout(), "%s %s %s p50 %.1f p90 %.1f p99 %.1f max %.1f %s: %s %s %s stall %.1f\n", r.Scenario, r.Program, r.Metric,
							r.Quantile(0.5), r.Quantile(0.9), r.Quantile(0.99), r.Quantile(1), r.Unit, r.Bound, r.Verdict, r.Why, r.StallMS)
					}
				}
			}
			return nil
		},
	}
	c.Flags().StringVar(&only, "only", "", "play only scenarios that have this `text` in their names")
	c.Flags().StringSliceVar(&programs, "programs", nil, "measure only these `programs`")
	c.Flags().Uint64Var(&p.seed, "seed", 1, "what the losses of the links are made from")
	return c
}
