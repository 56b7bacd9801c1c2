//go:build linux

package scenario

import (
	"time"

	"github.com/quicterm/quicterm/bench/event"
	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/program"
	"github.com/quicterm/quicterm/bench/work"
)

var (
	uncompressed = program.Quicterm{Variant: "uncompressed", Settings: map[string]string{"compression": `"off"`}}

	// slow is a slow link of 60 ms with a deep queue before it.
	slow = netem.Config{Delay: 30 * time.Millisecond, Rate: slowRate, Queue: deepQueue}
)

// feel is what a session feels like beyond the standard suite: Ctrl-C, slow links, and
// much output beside OpenSSH. It takes five minutes.
var feel = []Scenario{
	{
		Name: "typing, 29 % loss, --redundant", Link: lossy(0.29), Namespaces: true, Interfaces: 2, Sessions: 10, Work: hundredKeys,
		Program: program.Quicterm{Flags: []string{"--redundant"}},
		Bounds:  []Bound{{Metric: "truth", Quantile: 0.99, RTTs: 1.5}},
	},
	{
		Name: "Ctrl-C behind a flood, 1 Mbit/s, 60 ms", Link: slow, Sessions: 10,
		Work: work.CtrlC{Command: work.Flood(0), Times: 1, Lead: 4 * time.Second, Used: 3 * time.Second, Exact: true},
		Bounds: []Bound{
			{Metric: "prompt", Quantile: 0.5, RTTs: 2, Plus: 40},
			{Metric: "rate", Quantile: 0.5, Plus: 0.9, AtLeast: true}, // of 1 Mbit/s
			allOutput,
		},
	},
	{
		Name: "Ctrl-C behind yes, 1 Mbit/s, 20 ms", Alone: true,
		Link:   netem.Config{Delay: 10 * time.Millisecond, Rate: slowRate, Queue: deepQueue},
		Work:   work.CtrlC{Command: work.Yes, Times: 10, Used: 2 * time.Second},
		Bounds: []Bound{{Metric: "prompt", Quantile: 0.5, RTTs: 2, Plus: 20}},
	},
	{
		// All that is printed meanwhile fits the ring.
		Name: "Ctrl-C and ~n after an outage of 60 s", Link: slow, Sessions: 3,
		Events: event.BlackHole(4*time.Second, 64*time.Second),
		Work:   work.CtrlC{Command: work.Flood(1_000_000), Keys: work.SkipBacklog, Times: 1, Lead: 65 * time.Second, Used: time.Second},
		Bounds: []Bound{{Metric: "prompt", Quantile: 0.5, RTTs: 2, Plus: 40}},
	},
	{
		Name: "compiler log, 2 Mbit/s, 60 ms", Link: netem.Config{Delay: 30 * time.Millisecond, Rate: 2_000_000, Queue: deepQueue},
		Work:   work.Cat{Size: 5_000_000, Times: 1, Limit: time.Minute},
		Rivals: []program.Program{uncompressed},
		Bounds: []Bound{{Metric: "rate", Quantile: 0.5, Rival: uncompressed.Name(), Times: 4, AtLeast: true}},
	},
	{
		Name: "cat of 50 MB, 100 Mbit/s, 50 ms, 0.1 % loss", Namespaces: true, Alone: true,
		Link:   netem.Config{Delay: 25 * time.Millisecond, Loss: 0.001, Rate: 100_000_000, Queue: 600_000}, // a round trip's worth
		Work:   work.Cat{Size: 50_000_000, Times: 1, Limit: time.Minute},
		Rivals: []program.Program{program.SSH{}, program.SSH{Control: "bbr"}, uncompressed},
		Bounds: []Bound{{Metric: "rate", Quantile: 0.5, Rival: "ssh", Times: 1.5, AtLeast: true}},
	},
}
