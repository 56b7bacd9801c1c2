package session

import "time"

const (
	// minLossSample is how many datagrams make a measurement. Before that, the expected loss counts.
	minLossSample = 24

	// lossTimes is the number of datagrams whose send time is remembered: those of a
	// round trip while keys are resent.
	lossTimes = 64

	// lightLoss is the least loss that counts as one: one datagram of twice suspectSpan.
	lightLoss = 1.0 / 512

	// unknownLoss is what is expected of the first path: three copies.
	unknownLoss = 0.12

	// suspectSpan is how many datagrams must show that a path loses none, after a loss on its stream was suspected.
	suspectSpan = 256

	// firstSpan is the same for a new carrier: with 1 % loss, a third of them see one within it.
	firstSpan = 36
)

// lossSpans are the numbers of datagrams over which loss is measured: at least these
// and at most twice as many. The worse measurement counts: so a path that has become bad
// is known within seconds, and one that loses little is not taken for a clean one.
var lossSpans = [2]uint64{32, 256}

// A loss measures which part of a carrier's datagrams the network loses. The peer says how many have arrived; how
// many were sent by then is known from their times, one round trip ago.
type loss struct {
	expected float64 // before it is measured

	suspectUntil uint64 // datagrams sent, until which a loss is suspected

	total  uint64               // datagrams sent
	sentAt [lossTimes]time.Time // of the last ones

	last  tally                                       // at the last ack
	spans [len(lossSpans)]struct{ start, half tally } // half is where the next span starts
}

// A tally counts datagrams.
type tally struct{ sent, arrived uint64 }

// sent records that a datagram was sent.
func (l *loss) sent(now time.Time) {
	l.sentAt[l.total%lossTimes] = now
	l.total++
}

// acked records that a number of datagrams had arrived, about a round trip after the last of them was sent. In doubt
// it counts fewer as sent: datagrams on their way are not lost.
func (l *loss) acked(now time.Time, arrived uint64, rtt time.Duration) {
	if arrived == 0 || arrived > l.total || rtt == 0 {
		return
	}
	sent := l.total
	for sent > l.last.sent && l.total-sent < lossTimes-1 && now.Sub(l.sentAt[(sent-1)%lossTimes]) < rtt+rtt/8 {
		sent--
	}
	l.last.sent, l.last.arrived = max(sent, arrived), max(l.last.arrived, arrived)
	for i := range l.spans {
		s := &l.spans[i]
		switch n := l.last.sent - s.start.sent; {
		case n >= 2*lossSpans[i]:
			s.start, s.half = s.half, l.last
		case n < lossSpans[i]:
			s.half = l.last
		}
	}
}

// suspect records that something was lost that was no datagram. So few datagrams are sent while
// no loss is known that these alone would not show it.
func (l *loss) suspect() {
	if without(Suspicion) {
		return
	}
	l.suspectUntil = l.total + suspectSpan
}

// measured reports whether enough datagrams were sent to measure their loss.
func (l *loss) measured() bool { return l.last.sent >= minLossSample }

// share returns the part of the datagrams that the longest span has lost, for people: rate is rather too high, so
// that too much is resent and not too little. It is not known while few were sent.
func (l *loss) share() (share float64, known bool) {
	start := l.spans[len(l.spans)-1].start
	sent, arrived := l.last.sent-start.sent, l.last.arrived-start.arrived
	if sent < minLossSample {
		return 0, false
	}
	return max(0, 1-float64(arrived)/float64(sent)), true
}

// rate returns the part of the datagrams that is lost, from 0 to 1.
func (l *loss) rate() (worst float64) {
	if !l.measured() {
		return l.expected
	}
	if l.last.sent < l.suspectUntil {
		worst = lightLoss
	}
	for _, s := range l.spans {
		if sent, arrived := l.last.sent-s.start.sent, l.last.arrived-s.start.arrived; arrived < sent {
			worst = max(worst, 1-float64(arrived)/float64(sent))
		}
	}
	return worst
}
