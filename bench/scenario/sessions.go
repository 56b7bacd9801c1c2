//go:build linux

package scenario

import (
	"os"
	"time"

	"github.com/quicterm/quicterm/bench/event"
	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/program"
	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/bench/work"
)

// sessions is a session at rest and at work: memory, traffic, replay, connecting, restarts
// of the daemon. It takes six minutes.
var sessions = []Scenario{
	{
		Name: "replay of 60 MiB on loopback", Alone: true,
		Work:   work.Replay{Times: 3},
		Bounds: []Bound{{Metric: "of bare stream", Quantile: 1, Plus: 0.8, AtLeast: true}},
	},
	{
		Name: "typing on loopback", Alone: true,
		Work:   work.Typing{Pace: 20 * time.Millisecond, Spans: work.Keys(300, 20*time.Millisecond)},
		Rivals: []program.Program{program.Bare{}},
		Bounds: []Bound{{Metric: "truth", Quantile: 0.5, Rival: program.Bare{}.Name(), Times: 1, Plus: 1}},
	},
	{
		Name: "connect to the prompt", Link: far, Namespaces: true, Alone: true,
		Work:   work.Connect{Times: 7},
		Rivals: []program.Program{program.SSH{}},
		Bounds: []Bound{{Metric: "prompt", Quantile: 0.5, Rival: "ssh", Times: 0.5}},
	},
	verbs("verbs on loopback", netem.Config{}, 0),
	verbs("verbs far away", far, 2),
	{
		Name: "daemon killed and restarted",
		Work: work.Typing{Pace: 50 * time.Millisecond, Recovery: true, Exact: true,
			Spans: []work.Span{{From: 0, Until: 60 * time.Second}}},
		Events: restarts(10),
		Bounds: []Bound{{Metric: "recovery", Quantile: 1, Plus: 1000}, allOutput},
	},
	{
		Name: "daemon restarted by its manager", Link: far,
		Work: work.Typing{Pace: 20 * time.Millisecond, Exact: true,
			Spans: []work.Span{{From: 2 * time.Second, Until: 24 * time.Second}}},
		Events: managed(10),
		// the round trip of a key, and another one
		Bounds: []Bound{{Metric: "truth", Quantile: 1, Plus: 2*100 + 200}, allOutput},
	},
	{
		Name:   "daemon restarted, nobody types",
		Link:   far,
		Work:   work.Output{Lasts: 30 * time.Second, Rate: 2000, Late: 30 * time.Second},
		Events: event.KillDaemon(10*time.Second, 10500*time.Millisecond, nil),
		Bounds: []Bound{
			allOutput,
			{Metric: "back", Quantile: 1, Plus: 5000 + 1000}, // the interval of keepalives, and 1 s
		},
	},
	{
		Name: "memory of idle sessions", Work: work.Memory{More: 10},
		Bounds: []Bound{
			{Metric: "holder rss", Quantile: 1, Plus: 14},
			{Metric: "client rss", Quantile: 1, Plus: 20},
			{Metric: "daemon rss", Quantile: 1, Plus: 0.19},
		},
	},
	{
		Name: "socket folder removed, daemon restarted",
		Work: work.Typing{Pace: time.Second, Recovery: true, Spans: work.Keys(140, time.Second)},
		Events: event.KillDaemon(2*time.Second, 2500*time.Millisecond, func(h *rig.Host) {
			os.RemoveAll(h.Path("run"))
		}),
		Bounds: []Bound{{Metric: "recovery", Quantile: 1, Plus: 120_000}},
	},
}

// verbs is a session that programs use. A verb is to take some round trips and 60 ms as a whole process.
func verbs(name string, link netem.Config, rtts float64) Scenario {
	s := Scenario{Name: name, Link: link, Alone: true, Work: work.Verbs{Times: 15}}
	for _, metric := range []string{"qt run", "qt send", "qt send --key", "qt wait", "qt tail", "qt peek"} {
		s.Bounds = append(s.Bounds, Bound{Metric: metric, Quantile: 0.5, RTTs: rtts, Plus: 60})
	}
	// half of a round trip until it is told, and what it takes then to end
	s.Bounds = append(s.Bounds, Bound{Metric: "woken", Quantile: 0.5, RTTs: rtts / 4, Plus: 20})
	return s
}

// restarts returns events that kill the daemon n times, each time for half a second longer
// than before.
func restarts(n int) (events []event.Event) {
	const between = 3 * time.Second
	at := time.Second
	for i := range n {
		away := time.Duration(i) * 500 * time.Millisecond
		events = append(events, event.KillDaemon(at, at+away, nil)...)
		at += away + between
	}
	return events
}

// managed returns events by which a manager takes the daemon over, and restarts it n times.
func managed(n int) []event.Event {
	events := []event.Event{event.Manage(500 * time.Millisecond)}
	for i := range n {
		events = append(events, event.Restart(time.Duration(3+2*i)*time.Second))
	}
	return events
}
