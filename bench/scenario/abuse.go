//go:build linux

package scenario

import (
	"time"

	"github.com/quicterm/quicterm/bench/program"
	"github.com/quicterm/quicterm/bench/work"
)

// abuses is typing, and logins of newcomers, while strangers at 500 addresses flood the daemon, compared with the same
// without the flood. The daemon has the usual settings, except for a max_unauthenticated of a quarter, which is full
// sooner.
var abuses = []Scenario{
	flooded("junk", "junk", 10_000),
	flooded("half handshakes", "halves", 2000),
	flooded("resumes", "resumes", 100),
	flooded("refused logins", "refused", 100),
	flooded("logins", "logins", 100),
}

// flooded returns the scenario of a flood.
func flooded(name, what string, rate int) Scenario {
	const pace = 40 * time.Millisecond
	daemon := map[string]string{"max_unauthenticated": "64", "max_sessions_per_user": "100"}
	calm := program.Quicterm{Variant: notAttacked.Variant, Daemon: daemon}
	return Scenario{
		Name: "flood of " + name, Link: far, Namespaces: true, Sessions: 4 + 1, Alone: true,
		Program: program.Quicterm{Daemon: daemon}, Rivals: []program.Program{calm},
		Work: work.Attacked{
			Attack: work.Attack{What: what, Sources: 500, Rate: rate},
			Work:   work.Newcomers{Typing: work.Typing{Pace: pace, Spans: work.Keys(150, pace)}, Logins: 5},
		},
		Bounds: []Bound{
			{Metric: "truth", Quantile: 0.99, Rival: calm.Name(), Times: 1.2},
			{Metric: "login", Quantile: 1, Plus: 2000},
			{Metric: "daemon growth", Quantile: 1, Plus: 64},
			{Metric: "flood rate", Plus: 0.8 * float64(rate), AtLeast: true},
		},
	}
}
