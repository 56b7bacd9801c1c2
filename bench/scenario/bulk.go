//go:build linux

package scenario

import (
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/program"
	"github.com/quicterm/quicterm/bench/work"
)

const (
	fastRate    = 100_000_000 // bits a second
	fastQueue   = 625_000     // bytes that it carries in a round trip of 50 ms
	sharedRate  = 20_000_000
	sharedQueue = 125_000
)

var (
	// shared is a link with a queue of one round trip before it.
	shared = netem.Config{Delay: 25 * time.Millisecond, Rate: sharedRate, Queue: sharedQueue}

	one       = connections("1")
	four      = connections("4")
	adapting  = connections("auto")
	aggregate = program.Quicterm{Variant: "two interfaces", Settings: map[string]string{"paths": `"aggregate"`}}
)

// connections is quicterm with so many connections for bulk data.
func connections(n string) program.Quicterm {
	return program.Quicterm{Variant: n + " for bulk", Settings: map[string]string{"bulk_connections": `"` + n + `"`}}
}

// bulk is much data that cannot be compressed, over fast paths that lose packets and beside other
// traffic. It needs root and takes eight minutes.
var bulk = []Scenario{
	copied("copy, 100 Mbit/s, 50 ms, no loss", 0, 50_000_000, Bound{Plus: 0.9 * fastRate / 1e6}),
	copied("copy, 100 Mbit/s, 50 ms, 0.1 % loss", 0.001, 50_000_000, Bound{Rival: "ssh", Times: 4}),
	copied("copy, 100 Mbit/s, 50 ms, 1 % loss", 0.01, 15_000_000, Bound{Rival: "ssh", Times: 4}),
	{
		Name: "copy beside TCP, 20 Mbit/s, 50 ms", Namespaces: true, Alone: true, Link: shared, Program: adapting, Needs: program.NeedsSSH,
		Work:   work.BesideTCP{First: 4 * time.Second, Share: 4 * time.Second, Lasts: 20 * time.Second},
		Rivals: []program.Program{program.SSH{}, one, four},
		Bounds: []Bound{{Metric: "tcp share", Quantile: 0, Plus: 0.4, AtLeast: true}},
	},
	{
		Name: "Ctrl-C behind a flood over four connections", Namespaces: true, Alone: true, Link: shared, Program: four,
		Work:   work.CtrlC{Command: work.Flood(0), Times: 10, Lead: 3 * time.Second, Used: time.Second, Exact: true},
		Bounds: []Bound{{Metric: "prompt", Quantile: 0.5, RTTs: 2, Plus: 60}, allOutput},
	},
	{
		Name: "copy over two interfaces of 10 Mbit/s", Namespaces: true, Interfaces: 2, Alone: true, Program: aggregate,
		Link:   netem.Config{Delay: 25 * time.Millisecond, Rate: sharedRate / 2, Queue: sharedQueue / 2},
		Work:   work.Bulk{Size: 20_000_000, Times: 1},
		Bounds: []Bound{{Metric: "rate", Quantile: 0, Plus: 17, AtLeast: true}},
	},
}

// copied is a copy beside ssh, with a bound of its rate.
func copied(name string, loss float64, size int, bound Bound) Scenario {
	bound.Metric, bound.Quantile, bound.AtLeast = "rate", 0.5, true
	return Scenario{
		Name: name, Namespaces: true, Alone: true, Program: adapting, Needs: program.NeedsSSH,
		Link:   netem.Config{Delay: 25 * time.Millisecond, Loss: loss, Rate: fastRate, Queue: fastQueue},
		Work:   work.Bulk{Size: size, Times: 1},
		Rivals: []program.Program{program.SSH{}, one, four},
		Bounds: []Bound{bound},
	}
}
