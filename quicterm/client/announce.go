package client

import (
	"context"

	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// maxOthers bounds the clients beside this one that are known. A server allows fewer.
	maxOthers = 1000

	// maxArrivals bounds what waits to be announced, while the user's terminal is stopped.
	// Further ones are not announced.
	maxArrivals = 100
)

// An arrival is that another client joins or leaves the session.
type arrival struct {
	who    wire.Presence
	joined bool
}

// arrivedLocked handles a notice about another client. The same one may come more than once.
func (s *Session) arrivedLocked(text string, joined bool) {
	p, err := wire.ParsePresence(text)
	if err != nil || s.others[p.Number] == joined || joined && len(s.others) >= maxOthers {
		return
	}
	if joined {
		s.others[p.Number] = true
	} else {
		delete(s.others, p.Number)
	}
	if len(s.arrivals) < maxArrivals {
		s.arrivals = append(s.arrivals, arrival{p, joined})
		wake(s.linkChanged)
	}
}

// endingLocked handles a notice that the session is being ended. The same one may come more than once.
func (s *Session) endingLocked(text string) {
	if s.ending == "" {
		s.ending = wire.Printable(text, wire.MaxSummary)
		wake(s.linkChanged)
	}
}

// announce tells the streams of the link's state and of other clients. That may block for long, as
// with a terminal whose output is stopped.
func (s *Session) announce(ctx context.Context) {
	told, toldEnded, toldPorts := false, "", ""
	for {
		select {
		case <-s.linkChanged:
		case <-ctx.Done():
			return
		}
		s.gate.Lock()
		link, arrivals, ending, ended, ports := s.link, s.arrivals, s.ending, s.ended, s.ports
		s.arrivals = nil
		s.gate.Unlock()
		if s.streams.Changed != nil {
			s.streams.Changed(link)
		}
		for _, a := range arrivals {
			call := s.streams.Left
			if a.joined {
				call = s.streams.Joined
			}
			if call != nil {
				call(a.who)
			}
		}
		if ending != "" && !told && s.streams.Ending != nil {
			told = true
			s.streams.Ending(ending)
		}
		if ended != toldEnded && s.streams.Ended != nil {
			toldEnded = ended
			if e, err := wire.ParseEnded(ended); err == nil {
				s.streams.Ended(e)
			}
		}
		if ports != toldPorts && s.streams.Ports != nil {
			toldPorts = ports
			s.streams.Ports(wire.ParsePorts(ports))
		}
	}
}
