package session

import (
	"math"
	"testing"
	"time"

	"github.com/quicterm/quicterm/buffer"
)

// A target is an endpoint with one carrier. The test is its peer.
type target struct {
	t        *testing.T
	now      time.Time
	log      *buffer.Ring
	endpoint *Endpoint
	id       CarrierID

	datagrams, acks, bytes int // that it has sent; bytes of frames of its log on the stream
}

func newTarget(t *testing.T, maxDatagram int) *target {
	log := buffer.NewRing(16 << 20)
	now := time.Unix(1e9, 0)
	p := NewEndpoint(Config{Log: log, Acked: 1, Next: 1, Window: 1 << 20})
	return &target{t: t, now: now, log: log, endpoint: p, id: p.Up(now, maxDatagram, true)}
}

func (x *target) append(frames, size int) {
	for range frames {
		x.log.Append(output, make([]byte, size))
	}
	x.endpoint.Appended(x.now)
}

func (x *target) say(lane Lane, f buffer.Frame) {
	x.t.Helper()
	if lane == DatagramLane {
		x.endpoint.DatagramReceived(x.id)
	}
	if err := x.endpoint.Receive(x.now, x.id, lane, f); err != nil {
		x.t.Fatal(err)
	}
}

// flush counts what the target sends now.
func (x *target) flush() {
	x.t.Helper()
	for lane, next := range []func() []byte{
		StreamLane:   func() []byte { return x.endpoint.Stream(x.now, x.id, 64<<10) },
		DatagramLane: func() []byte { return x.endpoint.Datagram(x.now, x.id, nil) },
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
	x.wantSendWindow("after sending")
}

func (x *target) wantSendWindow(when string) {
	x.t.Helper()
	if n := x.endpoint.SendWindow(x.now); n < minCwnd || n > maxCwnd {
		x.t.Fatalf("a send window of %d bytes %s", n, when)
	}
}

// run lets time pass, as the driver does.
func (x *target) run(d time.Duration) {
	x.t.Helper()
	for until := x.now.Add(d); x.now.Before(until); {
		x.flush()
		at := until
		for _, lane := range []Lane{StreamLane, DatagramLane} {
			at = earlier(at, x.endpoint.SendTime(x.now, x.id, lane))
		}
		if !at.After(x.now) {
			x.t.Fatal("a lane has something to send after a flush")
		}
		x.now = at
	}
	x.flush()
}

func ackFrame(a ackInfo) buffer.Frame { return buffer.Frame{Type: ack, Payload: appendAck(nil, a)} }

// A peer that never acknowledges gets the initial window and then at most one reminder a
// second.
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
				x.say(DatagramLane, buffer.Frame{Seq: i + 1, Type: input, Payload: []byte("x")})
				x.endpoint.Consume(x.now, x.endpoint.Take(math.MaxInt)...)
			}
			x.run(time.Second)
		}
		if x.datagrams > 2*3600+100 {
			t.Errorf("%s: %d datagrams in an hour", test.why, x.datagrams)
		}
		if x.bytes > initialCwnd+test.size+buffer.Overhead { // whole frames
			t.Errorf("%s: %d bytes on the stream", test.why, x.bytes)
		}
		if want := time.Unix(1e9, 0); !x.endpoint.UnackedSince().Equal(want) {
			t.Errorf("%s: waits since %v, want %v", test.why, x.endpoint.UnackedSince(), want)
		}
	}
}

// Any number of pings that ask for an ack get one ack at each flush.
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

// Acks that are false, go back or are impossible make an endpoint send no more than they
// permit, and cause no storm.
func TestLyingAcks(t *testing.T) {
	for name, lie := range map[string]func(i uint64, next uint64) ackInfo{
		"backwards": func(i, next uint64) ackInfo { return ackInfo{received: next - i%next, windowEnd: 1 << 40 >> (i % 40)} },
		"nothing, again and again": func(i, next uint64) ackInfo {
			return ackInfo{received: 1, windowEnd: math.MaxUint64, datagrams: i}
		},
		"the highest at once": func(i, next uint64) ackInfo { return ackInfo{received: 1, highest: next - 1, windowEnd: 1 << 40} },
		"more datagrams than there were": func(i, next uint64) ackInfo {
			return ackInfo{received: 1 + i%next, datagrams: math.MaxUint64, windowEnd: 1 << 40, backlog: math.MaxUint64}
		},
		"long ago": func(i, next uint64) ackInfo {
			return ackInfo{received: 1 + i%next, highest: i % next, delay: maxReportedDelay, windowEnd: 1 << 40, datagrams: i}
		},
		"no room": func(i, next uint64) ackInfo { return ackInfo{received: 1 + i%2} },
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
					x.endpoint.Skip(0)
				}
				a := lie(i, x.log.Next())
				a.consumed = 1
				x.say(Lane(i%2), ackFrame(a))
				acks++
				x.run(time.Duration(i%7) * time.Millisecond)
				if p := x.endpoint; p.acked > p.log.Next() || p.consumed > p.acked {
					t.Fatalf("acked %d, consumed %d of %d", p.acked, p.consumed, p.log.Next()-1)
				}
			}
			if x.datagrams > 2*acks {
				t.Errorf("%d datagrams for %d acks", x.datagrams, acks)
			}
			if name == "no room" && x.bytes > initialWindow {
				t.Errorf("%d bytes sent, into a window of %d", x.bytes, initialWindow)
			}
			x.endpoint.Notify(1, "") // it still works
			x.flush()
			x.wantSendWindow("on a carrier")
			x.endpoint.Down(x.now, x.id)
			x.wantSendWindow("without one")
			x.endpoint.StandBy(x.now, x.endpoint.Up(x.now, 1100, false))
			if n := x.endpoint.SendWindow(x.now); n != minCwnd {
				t.Errorf("a send window of %d bytes, with only a carrier that stands by", n)
			}
		})
	}
}
