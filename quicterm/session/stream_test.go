package session

import (
	"bytes"
	"testing"
	"time"

	"github.com/quicterm/quicterm/buffer"
)

// wantOnWire checks that b is a frame with a payload of one byte.
func wantOnWire(t *testing.T, what string, b []byte, typ buffer.Type, payload byte) {
	t.Helper()
	if want := buffer.AppendFrame(nil, buffer.Frame{Type: typ, Payload: []byte{payload}}); !bytes.Equal(b, want) {
		t.Errorf("%s is %x, want %x", what, b, want)
	}
}

// newStreamWorld returns a world whose carriers have no datagrams, as a terminal's client and
// server use it.
func newStreamWorld(t *testing.T) *world {
	w := newWorld(t, 1)
	w.datagrams = false
	for i, e := range w.ends {
		e.endpoint = NewEndpoint(Config{Log: e.ring, Acked: 1, Next: 1, Window: 300 << 10, DelayAcks: i == 0, PeerDelaysAcks: i == 1})
	}
	return w
}

// Without datagrams, an echo comes back after a round trip, and costs few writes.
func TestTypingOnStream(t *testing.T) {
	w := newStreamWorld(t)
	w.connect()
	w.run(time.Second)
	client, server := w.ends[0], w.ends[1]
	const keys = 100
	w.writes = 0
	for range keys {
		typed := w.now
		w.append(0, 1)
		for until := w.now.Add(200 * time.Millisecond); w.now.Before(until); w.step(until) {
			if len(server.got) > 0 {
				w.consume(1, 1)
				w.append(1, 1)
			}
			if len(client.got) > 0 {
				w.consume(0, 1)
				if took := w.now.Sub(typed); took > 2*w.delay {
					t.Errorf("the echo took %v, want a round trip", took)
				}
			}
		}
	}
	if n := float64(w.writes) / keys; n > 3 {
		t.Errorf("%.1f writes for a key, want its own, the echo with an ack, and the ack of that", n)
	}
	if n := w.ends[0].endpoint.Counters().Resends + w.ends[1].endpoint.Counters().Resends; n > 0 {
		t.Errorf("%d frames were sent again on a stream", n)
	}
}

// Without datagrams, a ping is answered by the peer.
func TestPingOnStream(t *testing.T) {
	w := newStreamWorld(t)
	l := w.connect()
	w.run(time.Second)
	client, server := w.ends[0].endpoint, w.ends[1].endpoint
	server.Ping(l.ids[1])
	wantOnWire(t, "a ping", server.Stream(w.now, l.ids[1], 1000), 0x81, 1)
	w.writes = 0
	client.Ping(l.ids[0])
	w.run(2*w.delay - time.Millisecond)
	if w.writes != 2 || len(w.queue) != 1 {
		t.Errorf("%d writes, of which %d are under way; want the ping and an ack", w.writes, len(w.queue))
	}
	w.run(time.Minute)
	if w.writes != 2 {
		t.Errorf("%d writes, want no more", w.writes)
	}
}

// A carrier that stands by after it was used carries pings only, in both directions, and when
// it is used again the session continues at once.
func TestStandByAfterUse(t *testing.T) {
	w := newStreamWorld(t)
	first := w.connect()
	client, server := w.ends[0], w.ends[1]
	both := func(d time.Duration) {
		for until := w.now.Add(d); w.now.Before(until); w.run(10 * time.Millisecond) {
			w.append(0, 10)
			w.append(1, 1000)
			w.consume(0, len(client.got))
			w.consume(1, len(server.got))
		}
	}
	both(time.Second)
	second := w.connect()
	both(time.Second)
	client.endpoint.StandBy(w.now, first.ids[0])
	wantOnWire(t, "the frame that says so", client.endpoint.Stream(w.now, first.ids[0], 1000), 0x88, 1)
	w.at(w.delay, func() {
		server.endpoint.Receive(w.now, first.ids[1], StreamLane, buffer.Frame{Type: role, Payload: []byte{1}})
	})
	both(4 * w.delay)
	cursor := server.endpoint.carriers[first.ids[1]].out.cursor
	w.links, w.writes = []*link{first}, 0 // what is sent on the second only stays unsent for a moment
	w.run(time.Second)
	if w.writes != 0 {
		t.Errorf("%d writes to a carrier that stands by", w.writes)
	}
	w.links = []*link{first, second}
	both(10 * time.Second)
	client.endpoint.Ping(first.ids[0])
	both(time.Second)
	if now := server.endpoint.carriers[first.ids[1]].out.cursor; now != cursor {
		t.Errorf("%d frames went over a carrier that stands by", now-cursor)
	}

	w.cut(second)
	w.links = []*link{first}
	w.append(1, 10)
	client.endpoint.Activate(w.now, first.ids[0])
	begun := w.now
	w.append(0, 10)
	w.settle(time.Minute)
	if took := w.now.Sub(begun); took > 6*w.delay {
		t.Errorf("all had arrived %v after the carrier was used again, want at most three round trips", took)
	}
}

// A stream that is in order is not limited by how far ahead bulk carriers may be: a gap over many frames costs
// no round trip, and small frames fill the window.
func TestInOrderStreamIsNotAhead(t *testing.T) {
	w := newWorld(t, 1)
	w.rate = 10_000_000
	w.connect()
	w.run(time.Second)
	client, server := w.ends[0].endpoint, w.ends[1]
	for range 3 * MaxAhead {
		w.append(1, 100)
	}
	server.endpoint.Skip(5000)
	begun := w.now
	w.await(time.Second, "delivered", w.delivered)
	if took := w.now.Sub(begun); took > w.delay*3/2 {
		t.Errorf("frames behind a gap took %v", took)
	}
	_, before := client.Next()
	for until := w.now.Add(2 * time.Second); w.now.Before(until); {
		for server.endpoint.Unacked() < 290<<10 {
			w.append(1, 20)
		}
		w.step(w.now.Add(5 * time.Millisecond))
		w.consume(0, len(w.ends[0].got))
	}
	if _, after := client.Next(); after-before < 1_000_000 {
		t.Errorf("%d bytes of small frames came in 2 s", after-before)
	}
}
