package trace

import (
	"slices"
	"sort"
	"strings"
	"time"
	"unicode"

	"github.com/quicterm/quicterm/quicterm/screen/asciicast"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// effective is how long the program has had input that a hint names. A trace's hints are
	// looked up a little later than that.
	effective = 29 * time.Millisecond

	// effectLate is how long after a control key the holder tells that the program has had it, if nothing
	// else has told: at most, that is after a change of the terminal's modes.
	effectLate = 50 * time.Millisecond

	// together is how long after output a hint is looked up that goes in the same packet.
	together = time.Millisecond
)

// A delivery is what the client gets from the server.
type delivery struct {
	at    time.Duration // when it arrives
	sent  time.Duration
	event asciicast.Event
	hint  wire.Hint // of an event with the code Hint
}

// A server is the other end in a replay: the program answers the keys as it did when the trace was
// recorded, as long after they have come.
type server struct {
	arrived    []time.Duration // when the program got each input
	deliveries []delivery      // in order
	up, down   *lane
}

func serve(t *Trace, n Network) *server {
	s := &server{up: n.lane(1), down: n.lane(2)}
	var typed []time.Duration
	for _, e := range t.Events {
		if e.Code == asciicast.Input {
			typed = append(typed, e.At)
		}
	}
	s.arrived = s.up.arrivals(typed)
	inputs, late, last := 0, time.Duration(0), time.Duration(0) // late is how much later than in the trace it is
	out := uint64(0)
	for _, e := range t.Events {
		d := delivery{event: e}
		switch e.Code {
		case asciicast.Input:
			late = s.arrived[inputs] - e.At
			inputs++
			continue
		case asciicast.Output, asciicast.Resize:
			out++
		case Hint:
			d.hint, _ = ParseHint(e.Data) // Read has tried
			d.hint.Out = out
		default:
			continue
		}
		last = max(last, e.At+late)
		d.sent = last
		if e.Code == Hint {
			d.hint.In = s.had(last)
		}
		s.deliveries = append(s.deliveries, d)
	}
	s.tellEffects(t)
	arrive(s.deliveries, s.down)
	return s
}

// tellEffects adds the hints that holders send some time after a control key. Recordings may be of ones
// that did not.
func (s *server) tellEffects(t *Trace) {
	i := 0
	for _, e := range t.Events {
		if e.Code != asciicast.Input {
			continue
		}
		at := s.arrived[i] + effectLate
		i++
		if !strings.ContainsFunc(e.Data, unicode.IsControl) {
			continue
		}
		n := sort.Search(len(s.deliveries), func(i int) bool { return s.deliveries[i].sent > at })
		last := n - 1
		for last >= 0 && s.deliveries[last].event.Code != Hint {
			last--
		}
		if last < 0 || s.deliveries[last].hint.In >= uint64(i) || s.deliveries[last].hint.Terminal.Secret() {
			continue
		}
		d := s.deliveries[last]
		d.sent, d.hint.In, d.hint.Out = at, s.had(at), d.hint.Out+uint64(n-1-last)
		s.deliveries = slices.Insert(s.deliveries, n, d)
	}
}

// arrive fills in when deliveries arrive. A hint goes with the output that it follows at once.
func arrive(deliveries []delivery, down *lane) {
	var sent []time.Duration
	packet := make([]int, len(deliveries))
	for i, d := range deliveries {
		if i == 0 || d.event.Code != Hint || d.sent-deliveries[i-1].sent > together {
			sent = append(sent, d.sent)
		}
		packet[i] = len(sent) - 1
	}
	at := down.arrivals(sent)
	for i := range deliveries {
		deliveries[i].at = at[packet[i]]
	}
}

// had returns the last frame of input that the program has had for long enough for a hint.
func (s *server) had(at time.Duration) uint64 {
	return uint64(sort.Search(len(s.arrived), func(i int) bool { return s.arrived[i] > at-effective }))
}

// asked returns the hint that answers a client's question, or false if the trace has none.
func (s *server) asked(now time.Duration) (d delivery, ok bool) {
	d.sent = now + s.up.way()
	d.at = d.sent + s.down.way()
	d.event.Code = Hint
	for _, before := range s.deliveries {
		if before.sent > d.sent {
			break
		}
		switch before.event.Code {
		case Hint:
			d.hint, ok = before.hint, true
		default:
			d.hint.Out++
		}
		d.at = max(d.at, before.at)
	}
	d.hint.Out = 0
	for _, before := range s.deliveries {
		if before.sent <= d.sent && before.event.Code != Hint {
			d.hint.Out++
		}
	}
	d.hint.In = s.had(d.sent)
	return d, ok
}
