package session

import (
	"time"

	"github.com/quicterm/quicterm/buffer"
)

const (
	// maxPingTail is the longest tail that goes with each ping, in bytes: some ten keys. Of longer
	// ones, maxPingTails bytes go with pings: what was typed in the last seconds of an outage.
	maxPingTail  = 200
	maxPingTails = 16 << 10
)

// A pingState is whether a ping is due on a carrier.
type pingState struct {
	due  bool
	asks bool // it asks for an ack
}

// A probe is a ping that a carrier sends by itself, because an ack is overdue.
type probe struct {
	at    time.Time // when to send the next, while an ack matters
	count int       // in a row
}

// restartProbes schedules the first of a row of probes.
func (c *carrier) restartProbes(now time.Time) {
	c.probe.count = 0
	if without(Probes) {
		return
	}
	c.probe.at = now.Add(min(2*c.rtt.timeout(), maxFirstProbe))
}

// delayProbe schedules the next probe anew because frames were sent, unless probes are being sent.
func (c *carrier) delayProbe(now time.Time) {
	if c.probe.count == 0 {
		c.restartProbes(now)
	}
}

// appendPing appends a ping to a datagram. A probe is a ping that asks for an ack: the
// ack that would have unblocked the stream may have been lost.
func (e *Endpoint) appendPing(now time.Time, b []byte, c *carrier, probe bool) []byte {
	asks := probe || c.ping.asks
	c.ping.due, c.ping.asks = false, false
	if probe {
		c.probe.count++
		longest := maxResend
		if e.acked == e.log.Next() {
			longest = maxConsumeProbe
		}
		c.probe.at = now.Add(min(c.rtt.timeout()<<min(c.probe.count+1, 16), longest))
	}
	return AppendPing(b, asks)
}

// appendStreamPing appends a ping to what goes on a stream. It asks for an ack, because the
// transport tells this end nothing of its own acknowledgements.
func (e *Endpoint) appendStreamPing(b []byte, c *carrier) []byte {
	c.ping.due, c.ping.asks = false, false
	return buffer.AppendFrame(b, buffer.Frame{Type: ping, Payload: []byte{pingProbe}})
}

// AppendPing appends a ping as it is sent on any carrier, also on one that does not carry a
// session yet. A probe asks the peer's session for an ack.
func AppendPing(b []byte, probe bool) []byte {
	payload := make([]byte, pingBytes) // padded, so that a stateless reset can answer it
	if probe {
		payload[0] = pingProbe
	}
	return buffer.AppendFrame(b, buffer.Frame{Type: ping, Payload: payload})
}
