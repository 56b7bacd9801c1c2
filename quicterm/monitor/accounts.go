//go:build linux || darwin

package monitor

import (
	"github.com/quicterm/quicterm/quicterm/monitor/processes"
	"github.com/quicterm/quicterm/quicterm/quota"
)

// What one account can have of the monitor, whose time is for all. Each limit is beyond what a person
// with max_sessions_per_user windows reaches while all of them roam; who reaches one waits.
const (
	// maxRequests is how many requests of an account are served at once.
	maxRequests = 4

	// asksPerSession and startsPerSession are rates per second, for each session that an
	// account may have: how many holders are asked on its behalf, and how many started.
	// If there may be 100, that is eight listings of all of them a second, or ten short commands.
	asksPerSession   = 10
	startsPerSession = 0.1

	// leastAsks is how many holders a request counts for besides those that it asks: as long
	// as that takes, so long the daemon reads the names in a directory that an account fills.
	leastAsks = 20
)

// accounts limits what each account has. It is safe for concurrent use.
type accounts struct {
	requests     *quota.Turns[uint32] // that are served
	creating     *quota.Turns[uint32] // one an account, taken while a session gets its name
	asks, starts *quota.Rates[uint32] // of holders
}

func newAccounts(sessions int) *accounts {
	return &accounts{
		requests: quota.NewTurns[uint32](0, maxRequests),
		creating: quota.NewTurns[uint32](0, 1),
		asks:     quota.NewRates[uint32](float64(asksPerSession*sessions), 2*(leastAsks+processes.MaxSockets)),
		starts:   quota.NewRates[uint32](startsPerSession*float64(sessions), sessions),
	}
}
