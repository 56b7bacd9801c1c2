//go:build linux

package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

func roamCommand(running *measurements) *cobra.Command {
	g := &roaming{all: running, ahead: make(chan struct{}, 1), turn: make(chan struct{}, 1)}
	var only string
	c := &cobra.Command{
		Use:   "roam",
		Short: "Measure roaming: how long until a key is echoed after something happened to the network",
		Long: `Measure roaming: clients in network namespaces, each with two interfaces whose
round trips take 60 ms. Somebody types a key every 20 ms; the figures are the
median and the worst time from the event, or from the first key typed after it, to
the echo of that key. "At rest" is the time from key to echo before. Each key must
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
				fmt.Fprintln(c.OutOrStdout(), "quick: few samples, outages of 5 s, the worst may take twice as long")
			}
			return running.runRows(c.OutOrStdout(), only, g.groups())
		},
	}
	c.Flags().StringVar(&only, "only", "", "measure only what has this `text` in its name")
	c.Flags().IntVar(&g.runs, "runs", 20, "how often each is measured")
	c.Flags().BoolVar(&g.quick, "quick", false, "measure all in less than a minute")
	return c
}

// groups returns the rows. Outages are waited for side by side.
func (g *roaming) groups() [][]row {
	var groups [][]row
	for _, r := range roams {
		groups = append(groups, []row{g.row(r)})
	}
	var long []row
	for _, r := range outages {
		if g.quick {
			r.outage = 5 * time.Second
		}
		long = append(long, g.row(r))
	}
	return append(groups, long)
}

// What happens to a client.
func wlanDown(r *roamer, _ int)  { r.wlan.down() }
func readdress(r *roamer, _ int) { r.wlan.readdress() }
func blackHole(r *roamer, _ int) { r.wlan.lose(true) }

// eitherDies has one of the interfaces fail, one way or the other.
func eitherDies(r *roamer, sample int) {
	switch sample % 4 {
	case 0:
		r.wlan.down()
	case 1:
		r.wwan.down()
	case 2:
		r.wlan.lose(true)
	case 3:
		r.wwan.lose(true)
	}
}

var roams = []roam{
	{
		name:   "interface down, other up",
		median: rtt + 50*time.Millisecond, worst: 400 * time.Millisecond,
		event: wlanDown,
	},
}

var outages = []roam{}
