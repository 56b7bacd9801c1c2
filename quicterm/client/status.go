package client

import (
	"net/netip"
	"time"

	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/migrate/carrier"
)

// A Status says how a session is doing.
type Status struct {
	Name     string
	Link     LinkState
	RTT      time.Duration // end to end, 0 if not known
	Resumed  int           // how often another connection has taken over
	Paths    []Path
	Unacked  int // frames of input that the server has not acknowledged
	Counters Counters
}

// A Path is one of the connections of a session.
type Path struct {
	Transport Transport
	State     string         // live, moving, suspect, offline or standby
	Interface string         // over which packets leave, "" if not known
	Local     netip.AddrPort // not valid for SSH, like Remote
	Remote    netip.AddrPort
	RTT       time.Duration // 0 if not known
	Loss      float64       // the part of the packets to the server that is lost, from 0 to 1
	Sent      uint64        // bytes, without the headers below
	Received  uint64
	Since     time.Time
	Heard     time.Time // when a packet arrived last
	Moved     int       // how often its packets have changed their way
}

// roamerStatus is the part of a status that the roamer knows.
type roamerStatus struct {
	resumed int
	paths   []Path
}

// Status returns how the session is doing. Resumed and Paths are known only while Run runs.
// It blocks for at most StatusTimeout.
func (s *Session) Status() Status {
	answer := make(chan roamerStatus, 1)
	var roamer roamerStatus
	timeout := time.NewTimer(StatusTimeout)
	defer timeout.Stop()
	select {
	case s.statusRequests <- answer:
		roamer = <-answer
	case <-s.roamerDone:
	case <-timeout.C:
	}
	s.gate.Lock()
	defer s.gate.Unlock()
	return Status{
		Name:     s.attached.Name,
		Link:     s.link,
		RTT:      s.endpoint.BestRTT(),
		Resumed:  roamer.resumed,
		Paths:    roamer.paths,
		Unacked:  int(s.ring.Next() - s.endpoint.Acked()),
		Counters: Counters(s.endpoint.Counters()),
	}
}

// RTT returns the smoothed round-trip time, end to end, or 0 while it is not known.
func (s *Session) RTT() time.Duration {
	s.gate.Lock()
	defer s.gate.Unlock()
	return s.endpoint.BestRTT()
}

func (r *roamer) status() roamerStatus {
	status := roamerStatus{resumed: r.manager.Moves()}
	for _, p := range r.manager.Paths() {
		c := r.carriers[p.ID]
		if c == nil {
			continue
		}
		state := p.State.String()
		if p.StandBy && p.State == migrate.Live {
			state = "standby"
		}
		stats := c.stats()
		var port uint16
		if a, ok := c.conn.(carrier.Addressed); ok {
			port = a.LocalAddr().Port()
		}
		status.paths = append(status.paths, Path{
			Transport: Transport(p.Candidate.Transport),
			State:     state,
			Interface: p.Candidate.Interface,
			Local:     netip.AddrPortFrom(p.Candidate.Source, port),
			Remote:    p.Candidate.Remote,
			RTT:       r.rtt(c, stats),
			Loss:      r.loss(c, stats),
			Sent:      stats.BytesSent,
			Received:  stats.BytesReceived,
			Since:     p.Since,
			Heard:     p.Heard,
			Moved:     p.Moved,
		})
	}
	return status
}
