//go:build linux

package scenario

import (
	"time"

	"github.com/quicterm/quicterm/bench/program"
	"github.com/quicterm/quicterm/bench/work"
)

// abuses is typing, and logins of newcomers, while strangers at 500 addresses flood the daemon. Each has
// its quiet times in the same run. The daemon has the usual settings, except for a max_unauthenticated of a quarter, which
// is full sooner.
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
	return Scenario{
		Name: "flood of " + name, Link: far, Namespaces: true, Sessions: 4 + 1, Alone: true,
		Program: program.Quicterm{Daemon: map[string]string{"max_unauthenticated": "64", "max_sessions_per_user": "100"}},
		Work:    work.Flooded{Flood: work.NetworkFlood{What: what, Sources: 500, Rate: rate}, Pace: pace, Keys: 150, Logins: 5},
		Bounds: []Bound{
			{Metric: "of quiet", Quantile: 1, Plus: 1.2},
			{Metric: "login", Quantile: 1, Plus: 2000},
			{Metric: "daemon growth", Quantile: 1, Plus: 64},
			{Metric: "flood rate", Plus: 0.8 * float64(rate), AtLeast: true},
		},
	}
}
