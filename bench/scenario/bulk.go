//go:build linux

package scenario

import (
	"syscall"
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

	withBBR   = program.Quicterm{}
	withCubic = program.Quicterm{Variant: "cubic", Cubic: true}
	noTCP     = program.Quicterm{Variant: "TCP blocked", Blocked: syscall.IPPROTO_TCP}
	aggregate = program.Quicterm{Variant: "two interfaces", Settings: map[string]string{"paths": `"aggregate"`}}
)

// bulk is much data that cannot be compressed, over fast paths that lose packets and beside other
// traffic. It needs root and takes five minutes.
var bulk = []Scenario{
	copied("copy, 100 Mbit/s, 50 ms, no loss", withBBR, 0, 50_000_000, Bound{Rival: "ssh", Times: 1}),
	copied("copy, 100 Mbit/s, 50 ms, 0.1 % loss", withBBR, 0.001, 50_000_000, within(7*time.Second)),
	copied("copy with cubic, 100 Mbit/s, 50 ms, 0.1 % loss", withCubic, 0.001, 50_000_000, within(12*time.Second)),
	copied("copy, TCP blocked, 100 Mbit/s, 50 ms, 0.1 % loss", noTCP, 0.001, 10_000_000, Bound{Plus: 8}),
	copied("copy, 100 Mbit/s, 50 ms, 1 % loss", withBBR, 0.01, 15_000_000, Bound{Rival: "ssh", Times: 4}),
	{
		Name: "copy beside TCP, 20 Mbit/s, 50 ms", Namespaces: true, Alone: true, Link: shared, Program: withCubic,
		Needs:  program.NeedsSSH,
		Work:   work.BesideTCP{First: 4 * time.Second, Share: 4 * time.Second, Lasts: 20 * time.Second},
		Rivals: []program.Program{program.SSH{}},
		Bounds: []Bound{{Metric: "tcp share", Quantile: 0, Plus: 0.4, AtLeast: true}},
	},
	{
		Name: "Ctrl-C behind a flood over TCP", Namespaces: true, Alone: true, Link: shared, Program: withCubic,
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

// within is the bound of a copy of 50 MB that takes at most a time.
func within(d time.Duration) Bound { return Bound{Plus: 8 * 50 / d.Seconds()} }

// copied is a copy beside ssh, with a bound of its rate.
func copied(name string, p program.Program, loss float64, size int, bound Bound) Scenario {
	bound.Metric, bound.Quantile, bound.AtLeast = "rate", 0.5, true
	return Scenario{
		Name: name, Namespaces: true, Alone: true, Program: p, Needs: program.NeedsSSH,
		Link:   netem.Config{Delay: 25 * time.Millisecond, Loss: loss, Rate: fastRate, Queue: fastQueue},
		Work:   work.Bulk{Size: size, Times: 1},
		Rivals: []program.Program{program.SSH{}},
		Bounds: []Bound{bound},
	}
}
