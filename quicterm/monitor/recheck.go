//go:build linux || darwin

package monitor

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quicterm/quicterm/quicterm/monitor/access"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
)

// The network half asks again whether what let a client in still does: a while after an Attach, at once
// after a Resume, when the client has another address, and each day. One that was taken over would not.
// So the monitor asks itself when that is overdue. It keeps a descriptor of each connection to a holder
// that it has handed over, and shuts that of a client that has lost its access.

// maxOverdue is how many overdue logins are checked at once: a home may hang.
const maxOverdue = 8

// Hold implements [privsep.Logins].
func (l *logins) Hold(id privsep.LoginID, cut func()) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.byID[id]
	if p == nil {
		cut()
		return errNoLogin
	}
	p.leashes = append(p.leashes, cut)
	p.due = time.Now().Add(privsep.RightTime + overdueTime)
	return nil
}

// attach records that a login gets a session: each gets one, and at most once.
func (l *logins) attach(id privsep.LoginID) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.byID[id]
	if p == nil || p.attached {
		return errNoLogin
	}
	p.attached = true
	return nil
}

// checked records what a check of a login on a path has told.
func (l *logins) checked(by *privsep.By, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.byID[by.Login]
	switch {
	case p == nil:
	case access.IsWithdrawn(err):
		l.removeLocked(by.Login)
	case err != nil:
		p.due = time.Now().Add(privsep.RetryInterval + overdueTime)
	default:
		p.path, p.due = by.Path, time.Now().Add(privsep.RecheckInterval+overdueTime)
	}
}

// overdue returns the logins that should have been checked by now, on their last known paths.
func (l *logins) overdue(now time.Time) (overdue []privsep.By) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, p := range l.byID {
		if now.After(p.due) {
			overdue = append(overdue, privsep.By{Login: id, Path: p.path})
		}
	}
	return overdue
}

// recheck checks logins for which that is overdue, until ctx ends.
func (s *Monitor) recheck(ctx context.Context) error {
	return every(ctx, overdueTime/2, func() bool { s.checkOverdue(ctx); return false })
}

func (s *Monitor) checkOverdue(ctx context.Context) {
	var checks errgroup.Group
	checks.SetLimit(maxOverdue)
	defer checks.Wait()
	for _, by := range s.logins.overdue(time.Now()) {
		checks.Go(func() error {
			p, err := s.logins.get(by.Login)
			if err != nil {
				return nil
			}
			log := p.on(s.log, &by.Path)
			err = s.contain(log, func() error { return s.Check(ctx, &by) })
			if access.IsWithdrawn(err) {
				log.Warn("client has lost access, and the network process has not asked",
					"event", "withdraw", "reason", err.Error())
			}
			return nil
		})
	}
}

// Check returns nil if what let a client in still does. The error is a *[Withdrawn] if it does so no
// more: then the client's connection to its holder has ended. Any other error says nothing about that.
func (s *Monitor) Check(ctx context.Context, by *privsep.By) error {
	p, err := s.logins.get(by.Login)
	if err != nil {
		return err
	}
	err = s.rights.Check(ctx, p.right(&by.Path))
	if ctx.Err() == nil || access.IsWithdrawn(err) {
		s.logins.checked(by, err)
	}
	return err
}
