package session

import (
	"math"
	"testing"
	"time"

	"github.com/quicterm/quicterm/buffer"
)

// A target is a peer on a carrier, whose other end is played by the test.
type target struct {
	t    *testing.T
	now  time.Time
	log  *buffer.Ring
	peer *Peer
	id   CarrierID

	datagrams, acks, bytes int // that it has sent; bytes of frames of its log on the stream
}

func newTarget(t *testing.T, maxDatagram int) *target {
	log := buffer.NewRing(16 << 20)
	now := time.Unix(1e9, 0)
	p := NewPeer(Config{Log: log, Acked: 1, Next: 1, Reorder: 100, Window: 1 << 20})
	return &target{t: t, now: now, log: log, peer: p, id: p.Up(now, maxDatagram, true)}
}

func (x *target) append(frames, size int) {
	for range frames {
		x.log.Append(Stdout, make([]byte, size))
	}
	x.peer.Appended(x.now)
}

func (x *target) say(lane Lane, f buffer.Frame) {
	x.t.Helper()
	if lane == DatagramLane {
		x.peer.Received(x.id)
	}
	if err := x.peer.Receive(x.now, x.id, lane, f); err != nil {
		x.t.Fatal(err)
	}
}

// flush takes what the peer sends now.
func (x *target) flush() {
	x.t.Helper()
	for lane, next := range []func() []byte{
		StreamLane:   func() []byte { return x.peer.Stream(x.now, x.id, 64<<10) },
		DatagramLane: func() []byte { return x.peer.Datagram(x.now, x.id, nil) },
	} {
		calls := 0
		for b := next(); b != nil; b = next() {
			if calls++; calls > 1000 {
				x.t.Fatalf("sends for ever on lane %d", lane)
			}
			if Lane(lane) == DatagramLane {
				x.datagrams++
			}
			for len(b) > 0 {
				f, n, err := buffer.Parse(b)
				if err != nil {
					x.t.Fatal(err)
				}
				if f.Type == ack {
					x.acks++
				}
				if f.Type < Unsequenced && Lane(lane) == StreamLane {
					x.bytes += n
				}
				b = b[n:]
			}
		}
	}
	x.wantAppetite("after sending")
}

func (x *target) wantAppetite(when string) {
	x.t.Helper()
	if n := x.peer.Appetite(x.now); n < minCredit || n > maxCredit {
		x.t.Fatalf("an appetite for %d bytes %s", n, when)
	}
}

// run lets time pass, as the pump does.
func (x *target) run(d time.Duration) {
	x.t.Helper()
	for until := x.now.Add(d); x.now.Before(until); {
		x.flush()
		at := x.peer.Deadline(x.id)
		if at.IsZero() || at.After(until) {
			at = until
		}
		if !at.After(x.now) {
			x.t.Fatal("a deadline was not met")
		}
		x.now = at
	}
	x.flush()
}

func ackFrame(a Ack) buffer.Frame { return buffer.Frame{Type: ack, Payload: appendAck(nil, a)} }

// Who never acknowledges is sent what is allowed before anything is known, and then
// reminded at most once a second.
func TestNeverAcks(t *testing.T) {
	for _, test := range []struct {
		why          string
		frames, size int
		speaks       bool // it sends frames of its own
	}{
		{"a key", 1, 1, false},
		{"a flood", 100, 16 << 10, false},
		{"a key, and talks", 1, 1, true},
		{"a flood, and talks", 100, 16 << 10, true},
	} {
		x := newTarget(t, 1100)
		x.append(test.frames, test.size)
		for i := range uint64(3600) {
			if test.speaks {
				x.say(DatagramLane, buffer.Frame{Seq: i + 1, Type: Stdin, Payload: []byte("x")})
				x.peer.Consume(x.now, x.peer.Take()...)
			}
			x.run(time.Second)
		}
		if x.datagrams > 2*3600+100 {
			t.Errorf("%s: %d datagrams in an hour", test.why, x.datagrams)
		}
		if x.bytes > initialCredit+test.size+buffer.Overhead { // whole frames
			t.Errorf("%s: %d bytes on the stream", test.why, x.bytes)
		}
		if want := time.Unix(1e9, 0); !x.peer.Waiting().Equal(want) {
			t.Errorf("%s: waits since %v, want %v", test.why, x.peer.Waiting(), want)
		}
	}
}

// However many pings ask for an ack, they get one each time that something is sent.
func TestPingFlood(t *testing.T) {
	for _, maxDatagram := range []int{0, 1100} {
		x := newTarget(t, maxDatagram)
		x.run(time.Second)
		before := x.acks
		for range 100 {
			for range 1000 {
				x.say(StreamLane, buffer.Frame{Type: ping, Payload: []byte{1}})
			}
			x.flush()
		}
		if n := x.acks - before; n != 100 {
			t.Errorf("%d acks for pings that came 100 times, with datagrams of %d bytes", n, maxDatagram)
		}
		x.run(time.Minute)
		if n := x.acks - before; n != 100 {
			t.Errorf("%d more acks when the pings are over", n-100)
		}
	}
}

// Acks that are not true, go back, or say what cannot be, have nothing sent that they
// do not grant, and no storm.
func TestLyingAcks(t *testing.T) {
	for name, lie := range map[string]func(i uint64, next uint64) Ack{
		"backwards": func(i, next uint64) Ack { return Ack{Received: next - i%next, Limit: 1 << 40 >> (i % 40)} },
		"nothing, again and again": func(i, next uint64) Ack {
			return Ack{Received: 1, Limit: math.MaxUint64, Datagrams: i}
		},
		"the highest at once": func(i, next uint64) Ack { return Ack{Received: 1, Highest: next - 1, Limit: 1 << 40} },
		"more datagrams than there were": func(i, next uint64) Ack {
			return Ack{Received: 1 + i%next, Datagrams: math.MaxUint64, Limit: 1 << 40, Backlog: math.MaxUint64}
		},
		"long ago": func(i, next uint64) Ack {
			return Ack{Received: 1 + i%next, Highest: i % next, Delay: maxAckDelay, Limit: 1 << 40, Datagrams: i}
		},
		"no room": func(i, next uint64) Ack { return Ack{Received: 1 + i%2} },
	} {
		t.Run(name, func(t *testing.T) {
			x := newTarget(t, 1100)
			x.run(time.Second)
			acks := 0
			for i := range uint64(5000) {
				if i%100 == 0 {
					x.append(1+int(i/100)%20, 1+int(i*37)%(16<<10))
				}
				if i%1000 == 999 {
					x.peer.Skip(0)
				}
				a := lie(i, x.log.Next())
				a.Consumed = 1
				x.say(Lane(i%2), ackFrame(a))
				acks++
				x.run(time.Duration(i%7) * time.Millisecond)
				if p := x.peer; p.acked > p.log.Next() || p.consumed > p.acked {
					t.Fatalf("acked %d, consumed %d of %d", p.acked, p.consumed, p.log.Next()-1)
				}
			}
			if x.datagrams > 2*acks {
				t.Errorf("%d datagrams for %d acks", x.datagrams, acks)
			}
			if name == "no room" && x.bytes > initialGrant {
				t.Errorf("%d bytes sent, of %d granted", x.bytes, initialGrant)
			}
			x.peer.Notify(Displaced, "") // it still works
			x.flush()
			x.wantAppetite("on a carrier")
			x.peer.Down(x.now, x.id)
			x.wantAppetite("without one")
			x.peer.StandBy(x.peer.Up(x.now, 1100, false))
			if n := x.peer.Appetite(x.now); n != minCredit {
				t.Errorf("an appetite for %d bytes, with nothing but a carrier that stands by", n)
			}
		})
	}
}
