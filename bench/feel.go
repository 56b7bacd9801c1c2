//go:build linux

package main

import (
	"fmt"
	"os/exec"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/bench/rig"
)

func feelCommand(running *measurements) *cobra.Command {
	f := &feeling{}
	var only string
	c := &cobra.Command{
		Use:   "feel",
		Short: "Measure how a session feels on bad networks: keys, Ctrl-C behind output, slow links, much output",
		Long: `Measure how a session feels on bad networks: how long a key takes to its echo,
and Ctrl-C behind a flood of output to the prompt, what typing costs on the wire,
and how fast output comes beside OpenSSH. Links are emulated, and measured first.

Takes about six minutes. Where the programs' own processes are in the way of each
other the rows come one after the other. Keys and Ctrl-C that miss their bound while
this process could not run for 20 ms are measured again, once; how long it could not
is printed as its stall.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return running.runRows(c.OutOrStdout(), only, f.rows())
		},
	}
	c.Flags().StringVar(&only, "only", "", "measure only what has this `text` in its name")
	c.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "print each sample")
	return c
}

// A feeling runs the rows of issue 4.
type feeling struct {
	verbose bool
}

// feelRTT is the round trip of rows that do not say another one.
const feelRTT = 100 * time.Millisecond

// manyClients are settings of a daemon whose clients all come at once.
var manyClients = map[string]string{"log_level": `"info"`, "max_unauthenticated": "1000"}

// again returns a command like one that was not started. (Host.Via writes the
// client's settings, which another client may be reading.)
func again(cmd *exec.Cmd) *exec.Cmd {
	other := exec.Command(cmd.Path, cmd.Args[1:]...)
	other.Env = cmd.Env
	return other
}

// rows returns all rows. Those that are measured in one go share it.
func (f *feeling) rows() [][]row {
	clean := &typists{f: f, limits: limits{p50: 110}}
	lossy := &typists{f: f, loss: 0.29, limits: limits{p50: 110, p90: 140, p99: 200, max: 400}}
	some := &typists{f: f, loss: 0.05, limits: limits{p99: 130}}
	both := &typists{f: f, loss: 0.29, redundant: true, limits: limits{p99: 150}}
	return [][]row{
		{
			{"emulated link, proxy", "100 ms, 29 % lost each way, 1 Mbit/s", proxyLink},
			{"emulated link, namespaces", "100 ms, 29 % lost each way, 1 Mbit/s", inNamespaces(routerLink)},
		},
		{
			{"key echo at rest", "p50 <= 110 ms", clean.echo},
			{"resends on a clean path", "<= 5 % of bytes", clean.resends},
			{"typing on the wire, clean", "<= 1600 B/s", clean.wire(1600)},
		},
		{
			{"key echo, 29 % loss", "p50 <= 110, p90 <= 140, p99 <= 200, max <= 400 ms", lossy.echo},
			{"typing on the wire, 29 % loss", "<= 6000 B/s", lossy.wire(6000)},
		},
		{{"key echo, 5 % loss", "p99 <= 130 ms", some.echo}},
		{{"key echo, 29 % loss, --redundant", "p99 <= 150 ms", inNamespaces(both.echo)}},
		{
			{"Ctrl-C behind a flood, 1 Mbit/s, 60 ms", "<= 160 ms median, link >= 90 % used", calm(f.interruptFlood)},
			{"Ctrl-C and ~n after an outage of 60 s", "<= 160 ms median", f.skipBacklog},
			{"compiler log, 2 Mbit/s, 60 ms", ">= 4 x as fast as without compression", f.compilerLog},
		},
		{{"Ctrl-C behind yes, 1 Mbit/s, 20 ms", "<= 60 ms median", calm(f.interruptYes)}},
		{{"cat of 200 MB on loopback", ">= 1.0 x ssh, CPU <= 1.5 x", f.catLoopback}},
		{{"cat of 200 MB on loopback, without terminals", "", f.catPipe}},
		{{"cat of 50 MB, 100 Mbit/s, 50 ms, 0.1 % loss", ">= 1.5 x ssh", inNamespaces(f.catFar)}},
	}
}

// inNamespaces is a measure that says so where it is not permitted.
func inNamespaces(measure func(m *measurement) (string, bool)) func(m *measurement) (string, bool) {
	return func(m *measurement) (string, bool) {
		if err := rig.CanNamespace(); err != nil {
			return fmt.Sprintf("skipped: %v", err), true
		}
		return measure(m)
	}
}

// calm is a measure that is made again where it misses its bound and the machine
// was busy.
func calm(measure func(m *measurement) (string, bool)) func(m *measurement) (string, bool) {
	return func(m *measurement) (figure string, ok bool) {
		for range feelAttempts {
			stalls := watchStalls()
			figure, ok = measure(m)
			stall := stalls()
			figure += fmt.Sprintf("; stall %v", ms(stall))
			if ok || stall < believed {
				break
			}
		}
		return figure, ok
	}
}

// sideBySide measures several times at once, each with a measurement of its own.
func (m *measurement) sideBySide(n int, measure func(m *measurement, i int)) {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			errs[i] = m.all.run(fmt.Sprintf("%s, %d", m.name, i), m.bin, func(m *measurement) { measure(m, i) })
		})
	}
	wg.Wait()
	failed := 0
	var first error
	for _, err := range errs {
		if err != nil {
			failed++
			if first == nil {
				first = err
			}
		}
	}
	if failed > 0 {
		m.Fatalf("%d of %d failed: %v", failed, n, first)
	}
}

// percentile returns the smallest of sorted durations that a share of them, from
// 0 to 1, does not exceed (nearest rank).
func percentile(sorted []time.Duration, share float64) time.Duration {
	rank := int(share*float64(len(sorted)) + 0.999999)
	return sorted[min(max(rank, 1), len(sorted))-1]
}
