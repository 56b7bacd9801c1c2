//go:build linux || darwin

package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
)

// recheck closes the connection when what let the client in does so no more: it checks that
// after a time, when the client's address has changed, and each day. The caller calls stop
// when the connection has ended. After a login that time is privsep.RightTime: access may have been
// withdrawn between the proof and the Attach, and no result from before the Attach is used then.
func (c *conn) recheck(after time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(c.incoming.Context())
	var wg sync.WaitGroup
	c.spawn(&wg, func() {
		now, next := c.places(), time.Now().Add(after)
		timer := time.NewTimer(min(after, privsep.AddressInterval))
		defer timer.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			}
			if moved := c.places(); moved != now {
				now, next = moved, time.Now()
			}
			if !time.Now().Before(next) {
				_, err := c.server.monitor.Check(ctx, c.by())
				switch {
				case ctx.Err() != nil:
					return
				case errors.As(err, new(*privsep.Withdrawn)):
					c.server.counts.count("quicterm_withdrawn_total")
					c.log.Warn("client has lost access", "event", "withdraw", "reason", err.Error())
					c.ending.because(endedByCheck)
					c.carrier.Close()
					return
				case err != nil:
					c.log.Warn("cannot check a client's access", "error", err)
					next = time.Now().Add(privsep.RetryInterval)
				default:
					next = time.Now().Add(privsep.RecheckInterval)
				}
			}
			// All connections are looked at in the same moment: that is one wake-up a minute.
			timer.Reset(privsep.AddressInterval - uptime()%privsep.AddressInterval)
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}
