//go:build linux || darwin

package monitor

import (
	"context"
	"sync"

	"golang.org/x/time/rate"

	"github.com/quicterm/quicterm/quicterm/monitor/processes"
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
	sessions int // max_sessions_per_user

	mu    sync.Mutex
	byUID map[uint32]*accountUse // of accounts that have logged in since the start
}

func newAccounts(sessions int) *accounts {
	return &accounts{sessions: sessions, byUID: make(map[uint32]*accountUse)}
}

// An accountUse is what an account has.
type accountUse struct {
	requests chan struct{} // an element for each that is served
	asks     *rate.Limiter // of holders
	starts   *rate.Limiter // of holders
}

// of returns what an account has.
func (a *accounts) of(uid uint32) *accountUse {
	a.mu.Lock()
	defer a.mu.Unlock()
	u := a.byUID[uid]
	if u == nil {
		u = &accountUse{
			requests: make(chan struct{}, maxRequests),
			asks:     rate.NewLimiter(rate.Limit(asksPerSession*a.sessions), 2*(leastAsks+processes.MaxSockets)),
			starts:   rate.NewLimiter(rate.Limit(startsPerSession*float64(a.sessions)), a.sessions),
		}
		a.byUID[uid] = u
	}
	return u
}

// begin waits until a request of the account may be served, or ctx ends. The caller calls
// end after it.
func (u *accountUse) begin(ctx context.Context) (end func(), err error) {
	select {
	case u.requests <- struct{}{}:
		return func() { <-u.requests }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
