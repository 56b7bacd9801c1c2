package client

import (
	"context"
	"time"

	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/session"
)

// A roamerCarrier is a carrier that moves frames of the session.
type roamerCarrier struct {
	conn    carrier.Carrier // without what the session wraps around it
	to      migrate.Candidate
	resumed *resumedCarrier   // nil for the first one, which needs no resume
	id      session.CarrierID // guarded by the session's gate
	packets uint64            // received when the roamer looked last
	rtt     time.Duration     // that the manager knows
}

// accepted reports whether the server has accepted the carrier for the session.
func (c *roamerCarrier) accepted() bool { return c.resumed == nil || c.resumed.accepted.Load() }

func (c *roamerCarrier) stats() carrier.Stats {
	if r, ok := c.conn.(carrier.StatsReader); ok {
		return r.Stats()
	}
	return carrier.Stats{}
}

// dialed is the event that a dial has led to a carrier.
type dialed struct {
	migrate.Dial
	conn    carrier.Carrier
	resumed *resumedCarrier
}

// ended is the event that a carrier has ended.
type ended struct {
	id     migrate.ID
	reason error
}

// close ends a carrier or a dial.
func (r *roamer) close(id migrate.ID) {
	if cancel := r.dials[id]; cancel != nil {
		cancel()
		delete(r.dials, id)
	}
	if c := r.carriers[id]; c != nil {
		c.conn.Close()
	}
}

// change changes something about a carrier in the session's endpoint.
func (r *roamer) change(id migrate.ID, f func(*session.Endpoint, session.CarrierID)) {
	s := r.session
	s.gate.Lock()
	defer s.gate.Unlock()
	if c := r.carriers[id]; c != nil {
		f(s.endpoint, c.id)
		s.driver.Wake()
	}
}

// dial starts a dial, and the resume of the session on what it leads to.
func (r *roamer) dial(ctx context.Context, d migrate.Dial) {
	s := r.session
	s.log.Debug("dialing", "number", d.ID, "candidate", d.Candidate)
	dialCtx, cancel := context.WithCancel(ctx)
	r.dials[d.ID] = cancel
	r.wg.Go(func() {
		defer cancel()
		dialer := s.client.dialers[d.Candidate.Transport]
		dial := dialer.redial
		if d.Fresh {
			dial = dialer.dial
		}
		conn, err := dial(dialCtx, d.Candidate)
		var resumed *resumedCarrier
		if err == nil {
			stop := context.AfterFunc(dialCtx, func() { conn.Close() }) // a tunnel may block writes
			resumed, err = s.resume(conn)
			stop()
		}
		if err != nil {
			s.log.Debug("dial failed", "number", d.ID, "error", err)
			r.post(ctx, migrate.Down{ID: d.ID})
			return
		}
		r.post(ctx, dialed{d, conn, resumed})
	})
}

// add moves the session's frames over a carrier that was dialed.
func (r *roamer) add(ctx context.Context, d dialed) {
	if _, wanted := r.dials[d.ID]; !wanted {
		d.conn.Close() // the manager no longer wants it
		return
	}
	delete(r.dials, d.ID)
	c := &roamerCarrier{conn: d.conn, to: d.Candidate, resumed: d.resumed}
	r.carry(ctx, d.Dial, c, d.resumed)
}

// carry moves the session's frames over the lanes of a carrier until that ends.
func (r *roamer) carry(ctx context.Context, d migrate.Dial, c *roamerCarrier, lanes carrier.Carrier) {
	s := r.session
	r.carriers[d.ID] = c
	r.wg.Go(func() {
		err := s.driver.Run(lanes, true, func(number session.CarrierID) {
			c.id = number
			s.carried = true
			s.endIfDamagedLocked()
			switch {
			case d.StandBy:
				s.endpoint.StandBy(time.Now(), number)
			case d.Bulk:
				s.endpoint.Bulk(number)
			}
		})
		s.log.Debug("carrier ended", "number", d.ID, "error", err)
		r.post(ctx, ended{d.ID, err})
	})
}

// rtt returns the round trip of a carrier: what its transport has measured or, if that tells nothing, the session.
func (r *roamer) rtt(c *roamerCarrier, stats carrier.Stats) time.Duration {
	if stats.RTT > 0 {
		return stats.RTT
	}
	s := r.session
	s.gate.Lock()
	defer s.gate.Unlock()
	rtt, _ := s.endpoint.Path(c.id)
	return rtt
}

// loss returns which part of the packets to the server is lost: of the datagrams, as the server counts them. QUIC does
// not tell for its acks, most of what goes to the server during a download, and calls those lost that it has noticed.
func (r *roamer) loss(c *roamerCarrier, stats carrier.Stats) float64 {
	s := r.session
	s.gate.Lock()
	share, known := s.endpoint.Loss(c.id)
	s.gate.Unlock()
	if known {
		return share
	}
	return float64(stats.PacketsLost) / float64(max(stats.PacketsSent, 1))
}
