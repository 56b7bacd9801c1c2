//go:build linux

// Package scenario lists what is measured: each scenario is links, a topology, events, a
// work, and the bounds that quicterm is to keep.
package scenario

import (
	"slices"
	"strings"
	"time"

	"github.com/quicterm/quicterm/bench/event"
	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/program"
	"github.com/quicterm/quicterm/bench/work"
)

// A Scenario is work that is done over links while events happen. A new one is about ten
// lines.
type Scenario struct {
	Name string

	// Link is each way of each link. Namespaces says that the scenario needs network
	// namespaces, and so root: for TCP, NATs, or more interfaces.
	Link       netem.Config
	Namespaces bool
	Interfaces int  // of each client; 0 means 1
	DualStack  bool // the server has addresses of both IP versions

	Sessions int // side by side, each on a machine of its own; 0 means 1
	Events   []event.Event
	Stagger  time.Duration // between clients: events and work are later by this for each next one
	Work     work.Work

	Program program.Program   // Select makes nil quicterm as it is
	Rivals  []program.Program // measured before it, without an attack, for bounds that compare with them
	Bounds  []Bound

	// Growth is what grows from this scenario to the next in a table, as "sessions", and Size how far.
	Growth string
	Size   float64

	// Needs reports why the scenario cannot be measured here, or nil. A nil func needs nothing.
	Needs func() error

	Alone  bool // it computes: nothing else is measured meanwhile
	Places int  // how many sessions it counts as for what is measured side by side; 0 means all
	Quick  bool // it is measured by run --quick
}

// Clients returns how many sessions there are.
func (s Scenario) Clients() int { return max(s.Sessions, 1) }

// RTT returns the round trip of the link at rest.
func (s Scenario) RTT() time.Duration { return 2 * s.Link.Delay }

// Bounded reports whether a metric has a bound.
func (s Scenario) Bounded(metric string) bool {
	return slices.ContainsFunc(s.Bounds, func(b Bound) bool { return b.Metric == metric })
}

// quickClients is how many clients of a quick scenario come one after the other.
const quickClients = 3

// quickened returns the scenario with fewer clients that come one after the other, with half
// the keys if nothing happens.
func (s Scenario) quickened() Scenario {
	if s.Stagger > 0 {
		s.Sessions = min(s.Sessions, quickClients)
	}
	if t, ok := s.Work.(work.Typing); ok && len(s.Events) == 0 {
		all := t.Spans[0].Until
		t.Spans = []work.Span{{From: 0, Until: all / 2}}
		s.Work = t
	}
	return s
}

// A suite is a group of scenarios.
type suite struct {
	Name      string
	Scenarios []Scenario
}

// suites are the scenarios in groups, in the order of the tables. The first is what run
// measures if nothing else is asked for.
var suites = []suite{
	{"standard", standard},
	{"roam", roaming},
	{"feel", feel},
	{"session", sessions},
	{"reach", reach},
	{"screen", screens},
	{"attack", attacks},
	{"abuse", abuses},
	{"bulk", bulk},
	{"lean", lean},
	{"scale", scale},
	{"forward", forwards},
	{"ride", rides},
}

// all returns the scenarios of all suites.
func all() (scenarios []Scenario) {
	for _, s := range suites {
		scenarios = append(scenarios, s.Scenarios...)
	}
	return scenarios
}

// Names returns the names of all scenarios.
func Names() (names []string) {
	for _, s := range all() {
		names = append(names, s.Name)
	}
	return names
}

// Select returns the scenarios that have one of the texts in their names, and the suites of
// those names; "all" is all suites. Without a text it returns the standard suite. If quick is
// set, it returns the quick ones among them, or without a text among all.
func Select(only []string, quick bool) (selected []Scenario) {
	if len(only) == 0 {
		only = []string{suites[0].Name}
		if quick {
			only = []string{"all"}
		}
	}
	for _, suite := range suites {
		for _, s := range suite.Scenarios {
			wanted := slices.ContainsFunc(only, func(text string) bool {
				return text == "all" || text == suite.Name || !IsSuite(text) && strings.Contains(s.Name, text)
			})
			if s.Program == nil {
				s.Program = program.Quicterm{}
			}
			switch {
			case wanted && quick && s.Quick:
				selected = append(selected, s.quickened())
			case wanted && !quick:
				selected = append(selected, s)
			}
		}
	}
	return selected
}

// IsSuite reports whether a name is that of a suite.
func IsSuite(name string) bool {
	return slices.ContainsFunc(suites, func(s suite) bool { return s.Name == name })
}
