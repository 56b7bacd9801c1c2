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

// unsteady is typing on a path whose delay changes: each way it is the first one, and then the others, for
// a time each. What the client draws must stay.
func unsteady(name string, each, first time.Duration, delays ...time.Duration) Scenario {
	const pace = 100 * time.Millisecond
	return Scenario{
		Name: name, Link: netem.Config{Delay: first}, Sessions: 10, Program: program.Quicterm{Predicts: true},
		Work:   work.Typing{Pace: pace, Spans: work.Keys((1+len(delays))*int(each/pace), pace), Steady: true},
		Events: event.Delays(each, delays...),
		Bounds: []Bound{
			{Metric: "vanished", Quantile: 1},
			{Metric: "feel", Quantile: 0.5, RTTs: 1, Plus: 10},
			{Metric: "feel", Quantile: 0.9, RTTs: 1, Plus: 40}, // not the first keys of a longer delay, nor the first of a row
		},
	}
}

// feel is what a session feels like beyond the standard suite: Ctrl-C, slow links, and
// much output beside OpenSSH. It takes five minutes.
var feel = []Scenario{
	{
		Name: "typing, 29 % loss, --redundant", Link: lossy(0.29), Namespaces: true, Interfaces: 2, Sessions: 10,
		Work:    hundredKeys,
		Program: program.Quicterm{Flags: []string{"--redundant"}},
		Bounds:  []Bound{{Metric: "truth", Quantile: 0.99, RTTs: 1.5}},
	},
	unsteady("typing, RTT 20, then 300, then 20 ms", 2*time.Second, 10*time.Millisecond,
		150*time.Millisecond, 150*time.Millisecond, 10*time.Millisecond),
	unsteady("typing, RTT 20 to 300 ms and back in steps", time.Second, 10*time.Millisecond,
		30*time.Millisecond, 60*time.Millisecond, 150*time.Millisecond, 60*time.Millisecond, 30*time.Millisecond,
		10*time.Millisecond),
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
		Name: "Ctrl-C and skip after an outage of 60 s", Link: slow, Sessions: 3,
		Events: event.BlackHole(4*time.Second, 64*time.Second),
		Work: work.CtrlC{Command: work.Flood(1_000_000), Keys: work.SkipBacklog, Times: 1, Lead: 65 * time.Second,
			Used: time.Second},
		Bounds: []Bound{{Metric: "prompt", Quantile: 0.5, RTTs: 2, Plus: 40}},
	},
	{
		Name:   "compiler log, 2 Mbit/s, 60 ms",
		Link:   netem.Config{Delay: 30 * time.Millisecond, Rate: 2_000_000, Queue: deepQueue},
		Work:   work.Cat{Size: 5_000_000, Times: 1, Limit: time.Minute},
		Rivals: []program.Program{uncompressed},
		Bounds: []Bound{{Metric: "rate", Quantile: 0.5, Rival: uncompressed.Name(), Times: 4, AtLeast: true}},
	},
	{
		Name: "cat of 50 MB, 100 Mbit/s, 50 ms, 0.1 % loss", Namespaces: true, Alone: true,
		// a round trip's worth
		Link:   netem.Config{Delay: 25 * time.Millisecond, Loss: 0.001, Rate: 100_000_000, Queue: 600_000},
		Work:   work.Cat{Size: 50_000_000, Times: 1, Limit: time.Minute},
		Rivals: []program.Program{program.SSH{}, program.SSH{Control: "bbr"}, uncompressed},
		Bounds: []Bound{{Metric: "rate", Quantile: 0.5, Rival: "ssh", Times: 1.5, AtLeast: true}},
	},
}
