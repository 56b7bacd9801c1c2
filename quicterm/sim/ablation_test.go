//go:build ablation && (linux || darwin)

package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/client"
	delivery "github.com/quicterm/quicterm/quicterm/session"
)

var (
	tableFlag = flag.String("table", "", "write the table of ablation to this file, as Markdown")
	keysFlag  = flag.Int("keys", 1000, "keys of each cell")
	runsFlag  = flag.Int("runs", 4, "runs of each cell, with losses of their own")
	cellsFlag = flag.String("cells", "", "only the cells whose names match")
	onlyFlag  = flag.String("only", "", "only the mechanisms whose names match")
)

// mechanisms are what is switched off, one at a time.
var mechanisms = []struct {
	name      string
	off       delivery.Mechanism
	configure func(*client.Config)
}{
	{name: "everything on"},
	{name: "the stream first", off: delivery.StreamFirst},
	{name: "tails in datagrams", off: delivery.TailDatagrams},
	{name: "copies", off: delivery.Copies},
	{name: "suspected loss", off: delivery.Suspicion},
	{name: "expected loss", off: delivery.ExpectedLoss},
	{name: "tails beside pings", off: delivery.PingTails},
	{name: "probes", off: delivery.Probes},
	{name: "ack delays", off: delivery.AckDelays},
	{name: "spaced acks of copies", off: delivery.CopyAcks},
	{name: "window left out of acks", off: delivery.WindowOmission},
	{name: "drain", off: delivery.Drain},
	{name: "slow start ends early", off: delivery.SlowStartEnds},
	{name: "redundant carrier on", configure: func(c *client.Config) { c.Paths = "redundant" }},
}

// TestAblation measures the cells with each mechanism switched off.
func TestAblation(t *testing.T) {
	if *tableFlag == "" {
		t.Skip("without -table")
	}
	f, err := os.OpenFile(*tableFlag, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	wanted, only := regexp.MustCompile(*cellsFlag), regexp.MustCompile(*onlyFlag)
	defer func() { delivery.Without = 0 }()
	for _, c := range cells {
		if !wanted.MatchString(c.name) {
			continue
		}
		fmt.Fprintf(f, "\n%s\n\n| without | p50 ms | p99 ms | worst ms | gap ms | caught up ms | bytes | packets | CPU µs |\n|---|---|---|---|---|---|---|---|---|\n", c.name)
		for i, m := range mechanisms {
			if i > 0 && !only.MatchString(m.name) {
				continue
			}
			delivery.Without = m.off
			t.Run(strings.ReplaceAll(c.name+"/"+m.name, " ", "-"), func(t *testing.T) {
				keys := *keysFlag
				if c.floods {
					keys /= 16 // the program computes all the while
				}
				got := c.measure(t, *runsFlag, keys, m.configure)
				fmt.Fprintf(f, "| %s | %s |\n", m.name, got)
			})
		}
	}
}

func (m measurement) String() string {
	ms := func(d time.Duration) string { return fmt.Sprint(d.Round(time.Millisecond).Milliseconds()) }
	n := uint64(m.keys)
	return strings.Join([]string{ms(at(m.took, 0.5)), ms(at(m.took, 0.99)), ms(at(m.took, 1)), ms(at(m.gaps, 0.5)),
		ms(at(m.caught, 0.5)), fmt.Sprint(m.bytes / n), fmt.Sprintf("%.1f", float64(m.packets)/float64(n)),
		fmt.Sprint(m.cpu.Microseconds() / int64(n))}, " | ")
}
