//go:build linux

package scenario

import (
	"time"

	"github.com/quicterm/quicterm/bench/event"
	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/program"
	"github.com/quicterm/quicterm/bench/work"
)

const (
	roamRTT  = 60 * time.Millisecond // on each interface of a client
	roamPace = 20 * time.Millisecond
	roamers  = 20
	patient  = 10 // clients of long outages

	roamAt   = time.Second // when the first client roams; the others follow
	roamLead = 300 * time.Millisecond
	roamTail = 1500 * time.Millisecond
)

// roaming is clients with two interfaces to whose networks something happens while they
// type fast: one client after the other, each of them fresh. It needs root and takes 20
// minutes, or its quick part less than one.
var roaming = []Scenario{
	roam("interface down, other up", event.FirstDown(roamAt), most("recovery", 1, 50, 400)),
	roam("address replaced", event.Readdress(roamAt), most("recovery", 1, 50, 400)),
	roam("black hole, other up", event.FirstBlackHole(roamAt), most("recovery", 0, 500, 1200)),
	fromKey(roam("NAT mapping lost", event.ForgetNAT(roamAt), most("back", 2, 20, 400))),
	redundant(fromKey(roam("redundant, either path dies", event.EitherFails(roamAt), most("back", 1, 5, 80)))),
	dualStack(roam("IPv4 only, then IPv6 only", event.SwitchToIPv6(roamAt), most("recovery", 2, 100, 1000))),
	tenthLost(roam("10 % loss, interface down", event.FirstDown(roamAt), most("recovery", 0, 600, 2000))),
	tenthLost(roam("10 % loss, address replaced", event.Readdress(roamAt), most("recovery", 0, 600, 2000))),
	tenthLost(roam("10 % loss, black hole", event.FirstBlackHole(roamAt), most("recovery", 0, 600, 2000))),
	outage("5 s outage, event", 5*time.Second, event.AllDown, most("recovery", 1, 100, 600)),
	outage("5 s outage, no event", 5*time.Second, event.BlackHole, most("recovery", 1, 150, 600)),
	outage("30 s outage, event", 30*time.Second, event.AllDown, most("recovery", 1, 100, 600)),
	outage("30 s outage, no event", 30*time.Second, event.BlackHole, most("recovery", 1, 150, 600)),
	asleep(outage("sleep of 10 s, another address", 10*time.Second, event.Sleep, most("recovery", 2, 100, 1000))),
	silent(outage("5 s outage, no event, nobody types", 5*time.Second, event.BlackHole, most("back", 0, 1500, 2500))),
	{
		Name: "black hole, other up, nobody types", Link: roamLink, Namespaces: true, Interfaces: 2, Sessions: 5,
		Work:   work.Output{Lasts: 30 * time.Second, Rate: 2000, Late: 20 * time.Second, Gap: true},
		Events: []event.Event{event.FirstBlackHole(10 * time.Second)},
		Bounds: []Bound{
			allOutput,
			{Metric: "gap", Quantile: 1, Plus: 5000 + 2000}, // the interval of keepalives, and 2 s
		},
	},
	{
		Name: "chaos, 60 events", Link: roamLink, Namespaces: true, Interfaces: 2,
		Work: work.Leaks{Work: work.Typing{
			Pace: roamPace, Exact: true, Spans: []work.Span{{From: 0, Until: 5*time.Second + 60*time.Second + 5*time.Second}},
		}},
		Events: event.Chaos(1, 60, 5*time.Second, time.Second),
		Bounds: []Bound{
			allOutput,
			{Metric: "descriptors", Quantile: 1},
			{Metric: "threads", Quantile: 1, Plus: 8}, // Go keeps those that it made for blocking calls
			{Metric: "sessions", Quantile: 1},
		},
	},
	long(outage("10 min outage, event", 10*time.Minute, event.AllDown, most("recovery", 1, 150, 2500))),
	long(outage("10 min outage, no event", 10*time.Minute, event.BlackHole, most("recovery", 0, 2000, 2500))),
	silent(long(outage("10 min outage, no event, nobody types", 10*time.Minute, event.BlackHole,
		most("back", 0, 1500, 2500)))),
}

var roamLink = netem.Config{Delay: roamRTT / 2}

// most bounds the median of a metric, by round trips and a constant, and its worst, in ms.
func most(metric string, rtts, plus, worst float64) []Bound {
	return []Bound{{Metric: metric, Quantile: 0.5, RTTs: rtts, Plus: plus}, {Metric: metric, Quantile: 1, Plus: worst}}
}

// roam is a scenario in which one thing happens to each client while it types.
func roam(name string, what event.Event, bounds []Bound) Scenario {
	return Scenario{
		Name: name, Link: roamLink, Namespaces: true, Interfaces: 2, Sessions: roamers, Stagger: time.Second, Quick: true,
		Events: []event.Event{what},
		Work: work.Typing{
			Pace: roamPace, Recovery: true, Exact: true, Spans: []work.Span{{From: roamAt - roamLead, Until: roamAt + roamTail}},
		},
		Bounds: append(bounds, allOutput),
	}
}

// outage is a scenario in which clients are away for a time. They type a little when that
// begins, so that input waits, and again when it is nearly over.
func outage(name string, lasts time.Duration, away func(from, until time.Duration) []event.Event,
	bounds []Bound) Scenario {
	s := roam(name, event.Event{}, bounds)
	s.Events = away(roamAt, roamAt+lasts)
	t := s.Work.(work.Typing)
	end := roamAt + lasts
	const lead = time.Second
	t.Spans = []work.Span{{From: roamAt - roamLead, Until: roamAt + 5*roamPace}, {From: end - lead, Until: end + roamTail}}
	s.Work = t
	s.Quick = lasts == 5*time.Second
	return s
}

// long is an outage of few clients, side by side with others.
func long(s Scenario) Scenario {
	s.Sessions, s.Places = patient, patient/2
	return s
}

// silent replaces typing by a program that prints a line each 3 s.
func silent(s Scenario) Scenario {
	const line = 74 // bytes
	if s.Quick {
		s.Sessions = quickClients
	}
	last := s.Events[len(s.Events)-1].At + time.Duration(s.Sessions)*s.Stagger
	s.Work = work.Output{Lasts: last + 3*time.Second, Rate: line / 3, Late: 30 * time.Second}
	return s
}

// asleep leaves out the typing before the end: such keys would wait in the terminal. A client that continues draws its
// screen again, so that answers are looked for there, and not in what it writes.
func asleep(s Scenario) Scenario {
	t := s.Work.(work.Typing)
	t.Spans[1].From = s.Events[len(s.Events)-1].At
	t.Exact = false
	s.Work, s.Bounds = t, s.Bounds[:len(s.Bounds)-1]
	return s
}

// fromKey counts from the key after the event.
func fromKey(s Scenario) Scenario {
	t := s.Work.(work.Typing)
	t.Recovery = false
	s.Work = t
	return s
}

func redundant(s Scenario) Scenario {
	s.Program = program.Quicterm{Flags: []string{"--redundant"}}
	return s
}

func dualStack(s Scenario) Scenario {
	s.DualStack = true
	return s
}

func tenthLost(s Scenario) Scenario {
	s.Link.Loss = 0.1
	return s
}
