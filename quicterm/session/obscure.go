package session

import (
	"time"

	"github.com/quicterm/quicterm/buffer"
)

// While a person types a secret, who watches the wire is not to learn how many keys that are, nor when each was
// pressed: the times between keys tell much of a password. So from the first key on, one packet goes out at each
// point of a grid, with the keys since the last one or with none, and asks for an answer at once. All of them have
// the same size, and so have the answers. They go on for a while after the last key.
//
//	keys      x     x x                            x: appended
//	packets   |.....#.....#.....o.....o..  ..o     #: with keys, o: a dummy
//	answers      |.....#.....#.....#.....  ...#
const (
	// asksFor is how long after one such packet others are expected: some may be lost.
	asksFor = 5 * obscureGrid

	// obscuredSize is the size in bytes of what is sent at each point of the grid, or of the answer, before the
	// carrier seals it: an ack with a hint, and some keys. What is longer is filled to a multiple, up to maxFilled:
	// a datagram has no room for more.
	obscuredSize = 128
	maxFilled    = 4 * obscuredSize
)

// obscure is what an endpoint knows of the secret that is typed at it.
type obscure struct {
	secret       bool      // one would be, if a key came
	since, until time.Time // of the packets on the grid
}

// A grid is what a carrier knows of the packets that obscure when keys are pressed.
type grid struct {
	next       time.Time // the next point, if packets go out on it
	padsAnswer bool      // the next ack is filled
	asksUntil  time.Time // until then the peer asks for acks on the grid
	padding    Padding   // of what is sent now
}

// Padding says how to fill what goes on a carrier next.
type Padding byte

const (
	NoPadding     Padding = iota
	askPadded             // it asks for an answer that is filled too
	answersPadded         // it is that
)

// Secret says whether what is appended from now on is a secret.
func (e *Endpoint) Secret(typed bool) { e.obscure.secret = typed }

// appended begins to obscure, or continues, if what was appended is a secret.
func (o *obscure) appended(now time.Time) {
	if !o.secret {
		return
	}
	if !now.Before(o.until) {
		o.since = now
	}
	o.until = now.Add(obscureFor)
}

// obscures reports whether only packets on the grid go out on a carrier now.
func (e *Endpoint) obscures(now time.Time, c *carrier) bool {
	return now.Before(e.obscure.until) && c.ready && c.role == roleWhole
}

// obscuresStream is the same for the stream of a carrier without datagrams. Much that is pasted goes as always.
func (e *Endpoint) obscuresStream(now time.Time, c *carrier) bool {
	return c.maxDatagram == 0 && e.obscures(now, c) && e.log.Size(max(c.out.cursor, e.acked)) <= obscuredSize
}

// tick returns when the next packet on the grid is due, or when others are again.
func (e *Endpoint) tick(c *carrier) time.Time {
	at := gridAfter(e.obscure.since)
	if at.Before(c.grid.next) {
		at = c.grid.next
	}
	return earlier(at, e.obscure.until)
}

// gridAfter returns the first point of the grid after a time. It is the same for all sessions: where it begins
// tells nothing of the first key.
func gridAfter(t time.Time) time.Time {
	return t.Add(obscureGrid - time.Duration(t.UnixNano())%obscureGrid)
}

// appendTick appends what a carrier with datagrams sends at a point of the grid. Of the tail, it is what is new,
// unless a resend is due.
func (e *Endpoint) appendTick(now time.Time, b []byte, c *carrier) []byte {
	at, what := e.requestTime(now, c)
	c.loss.sent(now)
	c.grid.next, c.grid.padding, c.ping.due, c.ping.asks = gridAfter(now), askPadded, false, false
	b = e.appendAck(now, b, c)
	if due(now, at) && what == requestTail {
		b = e.appendTail(now, b, c)
	}
	return b
}

// streamTick is appendTick for a carrier without datagrams.
func (e *Endpoint) streamTick(now time.Time, c *carrier, limit int) []byte {
	c.grid.next, c.grid.padding, c.ping.due, c.ping.asks = gridAfter(now), askPadded, false, false
	b := e.appendAck(now, nil, c)
	from, to := e.nextOnStream(c)
	space := c.cwnd.size(now) - e.inFlight(c)
	if from < to && from >= e.First() && space > 0 && e.span(from, from+1) <= e.windowSpace(from, 0) {
		b = append(b, e.sendFrames(now, c, space, limit)...)
	}
	return b
}

// obscured takes the flag of a ping that the peer has sent.
func (c *carrier) obscured(now time.Time, flag byte) {
	if flag == pingObscured {
		c.grid.padsAnswer, c.grid.asksUntil = true, now.Add(asksFor)
	}
}

// TakePadding returns how to fill what Stream or Datagram has just returned for a carrier: see [Padding.Fill].
func (e *Endpoint) TakePadding(id CarrierID) (p Padding) {
	if c := e.carriers[id]; c != nil {
		p, c.grid.padding = c.grid.padding, NoPadding
	}
	return p
}

// Fill returns b, encoded frames, behind a ping that makes the whole a multiple of some size. The ping asks for an
// answer, or is one.
func (p Padding) Fill(b []byte) []byte {
	if p == NoPadding || p == answersPadded && len(b) >= obscuredSize-buffer.Overhead {
		return b // output, whose size tells nothing of keys that are not shown
	}
	flag := pingObscured
	if p == answersPadded {
		flag = pingPlain
	}
	size := len(b) + buffer.Overhead + 1
	payload := make([]byte, 1, 1+obscuredSize)
	payload[0] = flag
	if whole := (size + obscuredSize - 1) / obscuredSize * obscuredSize; whole <= maxFilled {
		payload = payload[:1+whole-size]
	}
	return append(buffer.AppendFrame(make([]byte, 0, size+obscuredSize), buffer.Frame{Type: ping, Payload: payload}), b...)
}
