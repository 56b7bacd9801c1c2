//go:build linux || darwin

package monitor

import (
	"context"

	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/monitor/processes"
	"github.com/quicterm/quicterm/quicterm/quota"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// What one account can have of the monitor, whose time is for all. Each limit is beyond what a person
// with max_sessions_per_user windows reaches while all of them roam; who reaches one waits. admit limits
// its sessions.
const (
	// maxRequests is how many requests of an account are served at once, and of each [processes.Side].
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
	requests *quota.Turns[processes.Asker] // that are served
	creating *quota.Turns[uint32]          // one an account, taken while a session gets its name
	asks     *quota.Rates[processes.Asker] // of holders
	starts   *quota.Rates[processes.Asker] // of holders, and of processes with a task
}

func newAccounts(sessions int) *accounts {
	return &accounts{
		requests: quota.NewTurns[processes.Asker](0, maxRequests),
		creating: quota.NewTurns[uint32](0, 1),
		asks:     quota.NewRates[processes.Asker](float64(asksPerSession*sessions), 2*(leastAsks+processes.MaxSockets)),
		starts:   quota.NewRates[processes.Asker](startsPerSession*float64(sessions), sessions),
	}
}

// maxExited bounds the sessions of an account whose programs have ended and that wait, each as a process, for a client
// that has not seen the status: one that was away while all of its windows ended loses nothing.
const maxExited = 100

// admit returns an error if no holder may start now. ids are the account's sessions, of which those in all have
// answered. Side pipes are counted apart, and an account may have as many of them.
func (c *client) admit(ctx context.Context, ids []wire.SessionID, all []entry, side bool) error {
	s, uid := c.server, c.account.UID
	if s.draining.Load() {
		return privsep.ErrDraining
	}
	count, exited := len(ids), 0 // including sessions whose holders do not answer
	for _, e := range all {
		if e.state.Ended && !side || (e.state.Side != 0) != side {
			count--
		}
		if e.state.Phase == wire.PhaseExited {
			exited++
		}
	}
	if limit := s.settings().MaxSessionsPerUser; count >= limit {
		return errorf(wire.CodeFailed,
			"%s has %d sessions already, and max_sessions_per_user is %d: end one with qt kill",
			c.account.Name, count, limit)
	}
	if exited >= maxExited {
		return errorf(wire.CodeFailed, "%s has %d sessions that have exited and whose status no client has seen: "+
			"qt attach shows one, qt kill ends one", c.account.Name, exited)
	}
	if err := s.checkMemory(uid, all); err != nil {
		return err
	}
	return s.accounts.starts.Of(processes.AskerOf(ctx, uid)).Wait(ctx)
}
