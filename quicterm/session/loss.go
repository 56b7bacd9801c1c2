package session

import "time"

const (
	// lossTrusted is how many datagrams make a measurement. Before that, loss is
	// expected.
	lossTrusted = 24

	// lossMarks is how many datagrams are remembered with their times: those of
	// a round trip while keys are resent.
	lossMarks = 64

	// lightLoss and heavyLoss are where datagrams are sent twice, and many times.
	lightLoss = 0.01
	heavyLoss = 0.12
)

// lossSpans are over how many datagrams loss is measured, at least and at most
// twice that. The worse measurement counts: a path that has become bad is known
// within seconds, and one that loses little is not taken for a clean one.
var lossSpans = [2]uint64{32, 256}

// A loss measures how many datagrams of a carrier do not arrive. The other end
// tells how many have; how many were sent by then is known from when they were,
// one round trip ago.
type loss struct {
	expected float64 // before it is measured

	sent  uint64 // datagrams, ever
	marks [lossMarks]time.Time

	last tally
	from [len(lossSpans)]struct{ begun, middle tally }
}

// A tally counts datagrams.
type tally struct{ sent, got uint64 }

// send takes note of a datagram.
func (l *loss) send(now time.Time) {
	l.marks[l.sent%lossMarks] = now
	l.sent++
}

// acked takes word that so many datagrams had arrived, about a round trip after
// the last of them was sent. In doubt it takes them for fewer: what is on its way
// is not lost.
func (l *loss) acked(now time.Time, got uint64, rtt time.Duration) {
	if got == 0 || got > l.sent || rtt == 0 {
		return
	}
	sent := l.sent
	for sent > l.last.sent && l.sent-sent < lossMarks-1 && now.Sub(l.marks[(sent-1)%lossMarks]) < rtt+rtt/8 {
		sent--
	}
	l.last.sent, l.last.got = max(sent, got), max(l.last.got, got)
	for i := range l.from {
		f := &l.from[i]
		switch n := l.last.sent - f.begun.sent; {
		case n >= 2*lossSpans[i]:
			f.begun, f.middle = f.middle, l.last
		case n < lossSpans[i]:
			f.middle = l.last
		}
	}
}

// rate returns the part of datagrams that is lost, from 0 to 1.
func (l *loss) rate() (worst float64) {
	if l.last.sent < lossTrusted {
		return l.expected
	}
	for _, f := range l.from {
		if sent, got := l.last.sent-f.begun.sent, l.last.got-f.begun.got; got < sent {
			worst = max(worst, 1-float64(got)/float64(sent))
		}
	}
	return worst
}
