//go:build linux

package scenario

import (
	"time"

	"github.com/quicterm/quicterm/bench/event"
	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/work"
)

const (
	rtt       = 100 * time.Millisecond // if a scenario says no other
	pace      = 200 * time.Millisecond // from one key to the next
	slowRate  = 1_000_000              // bits a second
	deepQueue = 1 << 20                // bytes

	// countBytes is how much a second the count takes that answers each key beside its
	// glyph: bounds of what typing costs are for glyphs alone.
	countBytes = 5.0 * float64(len("\x1b[1;1H<100>\x1b[5;31H"))
)

var (
	// far only takes time. bloat is slow, with a deep queue before it.
	far   = netem.Config{Delay: rtt / 2}
	bloat = netem.Config{Delay: rtt / 2, Rate: slowRate, Queue: deepQueue}

	hundredKeys = work.Typing{Pace: pace, Spans: work.Keys(100, pace)}
	sixtyKeys   = work.Typing{Pace: pace, Spans: work.Keys(60, pace)}
)

// lossy is far, and loses a share of all packets each way.
func lossy(share float64) netem.Config {
	cfg := far
	cfg.Loss = share
	return cfg
}

// standard is measured in five minutes. All but one of its scenarios need no root.
var standard = []Scenario{
	quick(typing("typing, no loss", far,
		Bound{Metric: "truth", Quantile: 0.99, RTTs: 1.2},
		Bound{Metric: "wire", Quantile: 1, Plus: 1600 + countBytes},
		Bound{Metric: "resent", Quantile: 1, Plus: 5})),
	typing("typing, 1 % loss", lossy(0.01),
		Bound{Metric: "truth", Quantile: 0.9, RTTs: 1.1},
		Bound{Metric: "truth", Quantile: 0.99, RTTs: 2.5}), // the first resend comes after the answer is overdue
	typing("typing, 5 % loss", lossy(0.05), Bound{Metric: "truth", Quantile: 0.99, RTTs: 1.3}),
	typing("typing, 10 % loss", lossy(0.10), Bound{Metric: "truth", Quantile: 0.99, RTTs: 1.5}),
	quick(typing("typing, 29 % loss", lossy(0.29),
		Bound{Metric: "truth", Quantile: 0.9, RTTs: 1.4},
		Bound{Metric: "truth", Quantile: 0.99, RTTs: 2},
		Bound{Metric: "truth", Quantile: 1, RTTs: 4},
		Bound{Metric: "wire", Quantile: 1, Plus: 6000 + 5*countBytes})), // it goes five times
	typing("typing, jitter of 30 ms", netem.Config{Delay: rtt / 2, Jitter: 30 * time.Millisecond},
		Bound{Metric: "truth", Quantile: 0.99, RTTs: 1.2, Plus: 2 * 30}),
	typing("typing, bursts of 100 ms, 5 %",
		netem.Config{Delay: rtt / 2, Burst: netem.Burst{Mean: 100 * time.Millisecond, Share: 0.05}},
		Bound{Metric: "truth", Quantile: 0.99, RTTs: 6}),
	typing("typing, 20 % reordered", netem.Config{Delay: rtt / 2, Reorder: 0.2, Early: 30 * time.Millisecond},
		Bound{Metric: "truth", Quantile: 0.99, RTTs: 1.2}),
	quick(disturbed("another address", thrice(event.Readdress), 3, 6)),
	quick(disturbed("black hole of 3 s", event.BlackHole(3*time.Second, 6*time.Second), 4, 10)),
	natted(disturbed("the NAT forgets", thrice(event.ForgetNAT), 3, 6)),
	{
		Name: "outage of 30 s while output runs", Link: far, Sessions: 3,
		Work:   work.Output{Lasts: 36 * time.Second, Rate: 20_000, Late: 20 * time.Second},
		Events: event.BlackHole(3*time.Second, 33*time.Second),
		Bounds: []Bound{
			allOutput,
			{Metric: "back", Quantile: 1, RTTs: 5},
		},
	},
	{
		Name: "idle", Link: far, Sessions: 2, Work: work.Idle{After: 10 * time.Second, Rest: 30 * time.Second},
		Bounds: []Bound{{Metric: "wire", Quantile: 1, Plus: 30}},
	},
	{
		Name: "Ctrl-C behind a flood, 1 Mbit/s", Link: bloat, Sessions: 10, Quick: true,
		Work: work.CtrlC{Command: work.Flood(0), Times: 1, Lead: 4 * time.Second, Used: 2 * time.Second},
		Bounds: []Bound{
			{Metric: "prompt", Quantile: 0.5, RTTs: 2, Plus: 40},
			{Metric: "rate", Quantile: 0.5, Plus: 0.9, AtLeast: true}, // of 1 Mbit/s
		},
	},
	{
		Name: "Ctrl-C behind yes, 1 Mbit/s", Link: bloat, Alone: true,
		Work:   work.CtrlC{Command: work.Yes, Times: 6, Used: 2 * time.Second},
		Bounds: []Bound{{Metric: "prompt", Quantile: 0.5, RTTs: 2, Plus: 20}},
	},
	{
		Name: "compiler log, 2 Mbit/s", Link: netem.Config{Delay: rtt / 2, Rate: 2_000_000, Queue: deepQueue}, Quick: true,
		Work:   work.Cat{Size: 10_000_000, Times: 1, Limit: time.Minute},
		Bounds: []Bound{{Metric: "rate", Quantile: 0.5, Plus: 4 * 0.25, AtLeast: true}}, // the link carries 0.25 MB/s
	},
	{
		Name: "50 MB of text, no limit", Alone: true,
		Work:   work.Cat{Size: 50_000_000, Times: 3, Limit: time.Minute},
		Bounds: []Bound{allOutput},
	},
	{
		Name: "CPU of 100 keys", Link: far, Sessions: 4, Work: hundredKeys, Alone: true,
		Bounds: []Bound{
			{Metric: "client cpu", Quantile: 1, Plus: 0.2},
			{Metric: "server cpu", Quantile: 1, Plus: 0.2},
		},
	},
}

// typing is a hundred keys of each of ten clients. Half of the answers are to come as soon
// as the link permits: after a round trip and the mean of its jitter, each way.
func typing(name string, link netem.Config, bounds ...Bound) Scenario {
	median := Bound{Metric: "truth", Quantile: 0.5, RTTs: 1, Plus: 10 + measure.Milliseconds(link.Jitter)}
	return Scenario{Name: name, Link: link, Sessions: 10, Work: hundredKeys, Bounds: append([]Bound{median}, bounds...)}
}

// disturbed is typing while something happens, with bounds of the median and the worst in
// round trips.
func disturbed(name string, events []event.Event, median, worst float64) Scenario {
	return Scenario{
		Name: name, Link: far, Sessions: 5, Work: sixtyKeys, Events: events,
		Bounds: []Bound{{Metric: "back", Quantile: 0.5, RTTs: median}, {Metric: "back", Quantile: 1, RTTs: worst}},
	}
}

// thrice is an event at three times.
func thrice(what func(at time.Duration) event.Event) []event.Event {
	return []event.Event{what(3 * time.Second), what(6 * time.Second), what(9 * time.Second)}
}

func quick(s Scenario) Scenario {
	s.Quick = true
	return s
}

// natted is for events that need a NAT.
func natted(s Scenario) Scenario {
	s.Namespaces = true
	return s
}
