//go:build linux

package main

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/bench/trace"
)

func predictCommand() *cobra.Command {
	var rtts []time.Duration
	var losses []float64
	var jitter time.Duration
	var seeds, misses int
	var each bool
	c := &cobra.Command{
		Use:   "predict [TRACE...]",
		Short: "Score the prediction of keys on recorded typing",
		Long: `Replay recordings of typing in virtual time, and count which keys the client draws before
the server has answered, and what it draws wrong. Without arguments, the recordings are those of
bench/traces. bench/README.md defines the figures.`,
		RunE: func(c *cobra.Command, files []string) error {
			if len(files) == 0 {
				files, _ = filepath.Glob("bench/traces/*.cast")
			}
			studies := make([]*trace.Study, len(files))
			for i, file := range files {
				t, err := trace.Open(file)
				if err != nil {
					return err
				}
				studies[i] = trace.NewStudy(t)
			}
			var networks []trace.Network
			for _, rtt := range rtts {
				for _, loss := range losses {
					for seed := range seeds {
						networks = append(networks, trace.Network{RTT: rtt, Jitter: jitter, Loss: loss / 100, Seed: uint64(seed) << 32})
					}
				}
			}
			var lines []trace.Line
			total := trace.Line{Name: "all", Result: new(trace.Result)}
			for _, s := range studies {
				r := trace.Score([]*trace.Study{s}, networks)
				if misses > 0 && len(r.Misses) > 0 {
					fmt.Fprintf(c.OutOrStdout(), "== %s\n", s.Name)
					trace.WriteMisses(c.OutOrStdout(), r.Misses, misses)
				}
				if each {
					lines = append(lines, trace.Line{Name: s.Name, Result: r})
				}
				total.Add(r)
			}
			lines = append(lines, total)
			return trace.WriteTable(c.OutOrStdout(), lines)
		},
	}
	c.Flags().DurationSliceVar(&rtts, "rtt", []time.Duration{100 * time.Millisecond, 300 * time.Millisecond},
		"round `trips`")
	c.Flags().Float64SliceVar(&losses, "loss", []float64{0, 5}, "`percent` of the packets that are lost, each way")
	c.Flags().DurationVar(&jitter, "jitter", 0, "added to each packet's way, up to this `time`")
	c.Flags().IntVar(&seeds, "seeds", 1, "how `often` each network is replayed, with other losses")
	c.Flags().BoolVar(&each, "each", false, "a line for each recording")
	c.Flags().IntVar(&misses, "misses", 0, "show the `n` worst misses of each recording")
	return c
}
