package quicterm

import (
	"net"
	"net/netip"
	"time"

	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/quicterm/session"
)

// A Status says how a session is doing.
type Status struct {
	Name     string
	Link     Link
	RTT      time.Duration // end to end, 0 if not known
	Resumed  int           // how often another connection has taken over
	Paths    []Path
	Unacked  int // frames of input that the server does not have
	Counters session.Counters
}

// A Path is one of the connections of a session.
type Path struct {
	State     string // live, moving, suspect, offline or standby
	Interface string // over which packets leave, "" if that is not known
	Local     netip.AddrPort
	Remote    netip.AddrPort
	RTT       time.Duration // 0 if not known
	Loss      float64       // of packets that were sent, from 0 to 1
	Sent      uint64        // bytes of UDP payload
	Received  uint64
	Since     time.Time
	Heard     time.Time // last
	Moved     int       // how often its packets have changed their way
}

// linkStatus is what the link's loop knows of a status.
type linkStatus struct {
	resumed int
	paths   []Path
}

// statusTime is how long Status waits for the link's loop, which answers at once
// if it runs.
const statusTime = 500 * time.Millisecond

// Status returns how the session is doing. It tells Resumed and Paths only while
// Run is under way. It does not block for long.
func (s *Session) Status() Status {
	answer := make(chan linkStatus, 1)
	var link linkStatus
	late := time.NewTimer(statusTime)
	defer late.Stop()
	select {
	case s.asked <- answer:
		link = <-answer
	case <-s.unlinked:
	case <-late.C:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return Status{
		Name:     s.attached.Name,
		Link:     s.link,
		RTT:      s.peer.BestRTT(),
		Resumed:  link.resumed,
		Paths:    link.paths,
		Unacked:  int(s.ring.Next() - s.peer.Acked()),
		Counters: s.peer.Counters(),
	}
}

func (k *linkKeeper) status() linkStatus {
	status := linkStatus{resumed: k.link.Resumed()}
	for _, p := range k.link.Paths() {
		c := k.carriers[p.ID]
		if c == nil {
			continue
		}
		stats := c.quic.Conn().ConnectionStats()
		port := c.quic.Conn().LocalAddr().(*net.UDPAddr).AddrPort().Port()
		state := p.State.String()
		if p.StandBy && p.State == migrate.Live {
			state = "standby"
		}
		status.paths = append(status.paths, Path{
			State:     state,
			Interface: p.Way.Interface,
			Local:     netip.AddrPortFrom(p.Way.Source, port),
			Remote:    p.Way.Remote,
			RTT:       stats.SmoothedRTT,
			Loss:      float64(stats.PacketsLost) / float64(max(stats.PacketsSent, 1)),
			Sent:      stats.BytesSent,
			Received:  stats.BytesReceived,
			Since:     p.Since,
			Heard:     p.Heard,
			Moved:     p.Moved,
		})
	}
	return status
}
