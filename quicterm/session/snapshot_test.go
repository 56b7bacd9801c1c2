package session

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/quicterm/quicterm/buffer"
)

// newSnapshotWorld returns a world with a server that has printed more than its ring holds.
func newSnapshotWorld(t *testing.T) (w *world, server, client *end) {
	w = newWorld(t, 1)
	w.takeSnapshots()
	w.rate = 100_000
	for range 100 {
		w.append(1, 16<<10)
	}
	return w, w.ends[1], w.ends[0]
}

// A peer that is too late for some frames gets a snapshot and all frames behind it.
func TestSnapshot(t *testing.T) {
	w, server, client := newSnapshotWorld(t)
	server.undrawn = 3
	w.connect()
	w.append(0, 1)
	w.settle(time.Minute)
	if want := []Gap{{From: 1, To: 97, Bytes: 97 * 16 << 10, Snapshot: snapshotOf(98)}}; !reflect.DeepEqual(client.lost, want) {
		t.Errorf("%d gaps, want one to frame 97 with its snapshot", len(client.lost))
	}
	if server.asked != 1 {
		t.Errorf("asked for %d snapshots, want 1", server.asked)
	}
}

// A client that attaches begins with a snapshot, although all frames are there.
func TestFirstSnapshot(t *testing.T) {
	for _, frames := range []int{1, 20, 200} {
		w := newWorld(t, 1)
		w.takeSnapshots()
		for range frames {
			w.append(1, 10_000)
		}
		w.ends[1].endpoint.Skip(0)
		w.connect()
		w.append(1, 10)
		w.settle(time.Minute)
		lost := w.ends[0].lost
		if len(lost) != 1 || lost[0].From != 1 || lost[0].To < uint64(frames) {
			t.Errorf("%d frames: %d gaps, want one from frame 1 on", frames, len(lost))
		}
	}
}

// Nothing of a snapshot is applied if its carrier is lost. The next one has another.
func TestSnapshotWhoseCarrierIsLost(t *testing.T) {
	w, server, client := newSnapshotWorld(t)
	for round := range 5 {
		server.undrawn = uint64(round)
		l := w.connect()
		w.run(w.delay*3 + 300*time.Millisecond) // of some 500 ms
		if n := len(client.endpoint.carriers[l.ids[0]].parts); n < 10_000 {
			t.Fatalf("%d bytes of the snapshot have come", n)
		}
		w.cut(l)
		w.links = nil
		w.run(time.Second)
		if len(client.got) > 0 {
			t.Fatalf("got %+v", client.got[0])
		}
	}
	w.connect()
	w.settle(time.Minute)
	if len(client.lost) != 1 {
		t.Errorf("%d gaps, want 1", len(client.lost))
	}
}

// Two carriers bring a snapshot each, which are applied in the order of their frames if both
// bring something new. Nothing of either is kept.
func TestSnapshotOverTwoCarriers(t *testing.T) {
	w, server, client := newSnapshotWorld(t)
	w.connect()
	w.run(200 * time.Millisecond)
	server.undrawn = 4 // the second brings less
	w.connect()
	w.settle(time.Minute)
	if server.asked != 2 || len(client.lost) > 2 {
		t.Errorf("asked for %d snapshots, want 2; %d gaps", server.asked, len(client.lost))
	}
	w.append(1, 5000)
	w.settle(time.Minute)
	for _, c := range client.endpoint.carriers {
		if len(c.parts) > 0 {
			t.Errorf("keeps %d bytes", len(c.parts))
		}
	}
	for _, c := range server.endpoint.carriers {
		if c.gap != nil {
			t.Error("keeps a gap to send")
		}
	}
}

// Carriers that send a snapshot at the same time send the same one, unless more was printed since than it
// has bytes.
func TestSnapshotIsShared(t *testing.T) {
	now := time.Unix(1e9, 0)
	ring := buffer.NewRing(1 << 20)
	ring.Append(input, make([]byte, 100))
	asked := 0
	snapshot := func() (uint64, []byte, bool) {
		asked++
		return ring.Next(), make([]byte, 3*maxPart), true
	}
	p := NewEndpoint(Config{Log: ring, Acked: 1, Next: 1, Window: 1 << 20, Snapshot: snapshot})
	p.Skip(0)
	begin := func(want int) {
		t.Helper()
		id := p.Up(now, 0, true)
		for p.carriers[id].gap == nil {
			p.Stream(now, id, 1)
		}
		if asked != want {
			t.Errorf("asked for %d snapshots, want %d", asked, want)
		}
	}
	begin(1)
	begin(1)
	ring.Append(input, make([]byte, 2*maxPart))
	begin(1)
	for range 2 {
		ring.Append(input, make([]byte, maxPart))
	}
	begin(2)
}

// A snapshot that is not ready is waited for.
func TestSnapshotNotReady(t *testing.T) {
	w, server, client := newSnapshotWorld(t)
	server.busy = true
	w.connect()
	w.run(10 * time.Second)
	if server.asked != 1 || len(client.got) > 0 {
		t.Errorf("asked %d times, and sent %d frames", server.asked, len(client.got))
	}
	w.append(1, 1)
	w.run(time.Second)
	if server.asked != 2 {
		t.Errorf("asked %d times after another frame, want 2", server.asked)
	}
	server.busy, server.undrawn = false, 100 // the first frames left the ring
	server.endpoint.SnapshotReady()
	w.run(time.Second)
	if server.asked != 3 || len(client.got) > 0 {
		t.Errorf("sent a snapshot of frames that are gone")
	}
	server.undrawn = 0
	server.endpoint.SnapshotReady()
	w.settle(time.Minute)
}

// A peer that does not read its output is sent one snapshot, not one each time the ring has
// turned over. When it reads again it gets the last.
func TestSnapshotForAStoppedPeer(t *testing.T) {
	w, server, client := newSnapshotWorld(t)
	w.connect()
	for range 100 {
		for range 100 {
			w.append(1, 16<<10)
		}
		w.run(time.Second)
	}
	if server.asked != 1 {
		t.Errorf("asked for %d snapshots, want 1", server.asked)
	}
	w.settle(time.Minute)
	if n := len(client.lost); n != 2 || client.lost[1].To < 9_000 {
		t.Errorf("%d gaps, the last %d-%d", n, client.lost[n-1].From, client.lost[n-1].To)
	}
}

// While more is printed than a slow path takes, a peer gets one snapshot after the other.
func TestSnapshotsDuringAFlood(t *testing.T) {
	w, server, client := newSnapshotWorld(t)
	w.connect()
	for range 300 {
		for range 20 {
			w.append(1, 16<<10)
		}
		w.run(100 * time.Millisecond)
		w.consume(0, len(client.got))
	}
	if n := len(client.lost); n < 10 || server.ring.Next()-client.next > 400 {
		t.Errorf("%d gaps, and %d frames behind", n, server.ring.Next()-client.next)
	}
	w.settle(time.Minute)
}

func part(offset int, size int) buffer.Frame {
	return buffer.Frame{Type: snapshotPart, Payload: appendPart(nil, offset, make([]byte, size))}
}

func gapWith(next, offset, snapshot uint64) buffer.Frame {
	return buffer.Frame{Type: gap, Payload: appendGap(nil, gapInfo{next, offset, snapshot})}
}

func TestHostileSnapshots(t *testing.T) {
	const big = buffer.MaxPayload - 10
	whole := func(frames ...buffer.Frame) (all []buffer.Frame) {
		for n := 0; n+big <= MaxSnapshot; n += big {
			all = append(all, part(n, big))
		}
		return append(all, frames...)
	}
	end := MaxSnapshot / big * big
	for _, test := range []struct {
		why    string
		frames []buffer.Frame
		lane   Lane // of the last frame, of which the peer must be told if refused
		refuse bool
	}{
		{"in two parts", []buffer.Frame{part(0, 10), part(10, 5), gapWith(3, 20, 15)}, StreamLane, false},
		{"given up and begun again", []buffer.Frame{part(0, 10), part(0, 5), gapWith(3, 20, 5)}, StreamLane, false},
		{"given up for frames", []buffer.Frame{part(0, 10), {Seq: 1, Type: input}, gapWith(3, 20, 10)}, StreamLane, true},
		{"given up for a gap", []buffer.Frame{part(0, 10), gapWith(3, 20, 0)}, StreamLane, false},
		{"parts without a gap", []buffer.Frame{part(0, 10), part(10, 10)}, StreamLane, false},
		{"too short", []buffer.Frame{part(0, 10), gapWith(3, 20, 11)}, StreamLane, true},
		{"too long", []buffer.Frame{part(0, 10), gapWith(3, 20, 9)}, StreamLane, true},
		{"gap without parts", []buffer.Frame{gapWith(3, 20, 1)}, StreamLane, true},
		{"gap of an endless snapshot", []buffer.Frame{gapWith(3, 20, math.MaxUint64)}, StreamLane, true},
		{"part that leaves some out", []buffer.Frame{part(0, 10), part(11, 1)}, StreamLane, true},
		{"part that comes again", []buffer.Frame{part(0, 10), part(9, 1)}, StreamLane, true},
		{"first part is missing", []buffer.Frame{part(10, 10)}, StreamLane, true},
		{"part without an offset", []buffer.Frame{{Type: snapshotPart}}, StreamLane, true},
		{"part in a datagram", []buffer.Frame{part(0, 10)}, DatagramLane, true},
		{"gap in a datagram", []buffer.Frame{part(0, 10), gapWith(3, 20, 10)}, DatagramLane, true},
		{"plain gap in a datagram", []buffer.Frame{part(0, 10), gapWith(3, 20, 0)}, DatagramLane, false},
		{"as long as allowed", whole(part(end, MaxSnapshot-end), gapWith(3, 20, MaxSnapshot)), StreamLane, false},
		{"longer than allowed", whole(part(end, MaxSnapshot-end+1)), StreamLane, true},
	} {
		p := NewEndpoint(Config{Log: buffer.NewRing(0), Acked: 1, Next: 1, Window: 1 << 20, TakeSnapshots: true})
		id := p.Up(time.Time{}, 1100, true)
		for i, f := range test.frames {
			lane, last := StreamLane, i == len(test.frames)-1
			if last {
				lane = test.lane
			}
			var protocol *ProtocolError
			if err := p.Receive(time.Time{}, id, lane, f); errors.As(err, &protocol) != (last && test.refuse) {
				t.Errorf("%s: frame %d: %v", test.why, i, err)
			}
		}
		for _, d := range p.Take(math.MaxInt) {
			if d.Gap != nil && test.refuse {
				t.Errorf("%s: delivered %d bytes", test.why, len(d.Gap.Snapshot))
			}
		}
	}
}

// All carriers of an attachment together keep no more than one snapshot may have.
func TestMemoryOfSnapshots(t *testing.T) {
	now := time.Unix(1e9, 0)
	p := NewEndpoint(Config{Log: buffer.NewRing(0), Acked: 1, Next: 1, Window: 1 << 20, TakeSnapshots: true})
	const size = 60_000
	before := heapSize()
	kept := 0
	for i := range 20 {
		id := p.Up(now, 0, true)
		for n := 0; ; n += size {
			if err := p.Receive(now, id, StreamLane, part(n, size)); err != nil {
				break
			}
			if kept += size; i%2 == 1 && n > MaxSnapshot/50 {
				break
			}
		}
		if i == 5 {
			p.Down(now, 1) // its memory is free
			kept = 0
		}
	}
	if kept == 0 || kept > MaxSnapshot {
		t.Errorf("kept %d bytes", kept)
	}
	if n := heapSize() - before; n > 2*MaxSnapshot {
		t.Errorf("%d bytes of memory", n)
	}
}

// Of the snapshots that are not taken only the last is kept.
func TestPendingSnapshots(t *testing.T) {
	now := time.Unix(1e9, 0)
	p := NewEndpoint(Config{Log: buffer.NewRing(0), Acked: 1, Next: 1, Window: 1 << 20, TakeSnapshots: true})
	id := p.Up(now, 0, true)
	say := func(frames ...buffer.Frame) {
		t.Helper()
		for _, f := range frames {
			if err := p.Receive(now, id, StreamLane, f); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := func(why string, want ...string) {
		t.Helper()
		var got []string
		for _, d := range p.Take(math.MaxInt) {
			if d.Gap == nil {
				got = append(got, fmt.Sprint(d.Seq))
			} else {
				got = append(got, fmt.Sprintf("%d-%d %d", d.Gap.From, d.Gap.To, len(d.Gap.Snapshot)))
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, want %q", why, got, want)
		}
	}
	say(part(0, 5), gapWith(3, 0, 5), buffer.Frame{Seq: 3, Type: input}, part(0, 6), gapWith(6, 0, 6))
	want("a frame between two", "1-2 0", "3", "4-5 6")
	say(part(0, 5), gapWith(8, 0, 5), part(0, 7), gapWith(9, 0, 7))
	want("two that meet", "6-8 7")
	say(part(0, 5), gapWith(10, 0, 5), gapTo(12, 0))
	want("then a gap without one", "9-11 5")
	say(part(0, 5), gapWith(10, 0, 5), part(0, 5), gapWith(13, 0, 5))
	want("an old one", "12-12 5")
}

// An end that takes no snapshots refuses them: a client has none to send.
func TestSnapshotsAreRefused(t *testing.T) {
	x := newTarget(t, 1100)
	var protocol *ProtocolError
	if err := x.endpoint.Receive(x.now, x.id, StreamLane, part(0, 10)); !errors.As(err, &protocol) {
		t.Errorf("a part of a snapshot: %v", err)
	}
}

// Snapshots fill writes, and acks do not wait behind all of one.
func TestSnapshotInParts(t *testing.T) {
	now := time.Unix(1e9, 0)
	log := buffer.NewRing(0)
	for range 2 {
		log.Append(output, []byte("x"))
	}
	data := bytes.Repeat([]byte("snapshot"), 100_000)
	p := NewEndpoint(Config{Log: log, Acked: 1, Next: 1, Window: 1 << 20,
		Snapshot: func() (uint64, []byte, bool) { return 3, data, true }})
	p.Skip(0)
	id := p.Up(now, 0, true)
	p.Stream(now, id, 64<<10) // the greeting
	var got []byte
	writes := 0
	for b := p.Stream(now, id, 64<<10); b != nil; b = p.Stream(now, id, 64<<10) {
		writes++
		if len(b) > 64<<10+2*maxPart {
			t.Errorf("a write of %d bytes", len(b))
		}
		for len(b) > 0 {
			f, n, err := buffer.Parse(b)
			if err != nil {
				t.Fatal(err)
			}
			if f.Type == snapshotPart {
				if want := appendPart(nil, len(got), nil); !bytes.HasPrefix(f.Payload, want) {
					t.Fatalf("part begins with %x, want %x", f.Payload[:len(want)], want)
				}
				got = append(got, f.Payload[len(appendPart(nil, len(got), nil)):]...)
			} else if want := gapWith(3, 2, uint64(len(data))); !reflect.DeepEqual(f, want) {
				t.Errorf("frame %+v, want %+v", f, want)
			}
			b = b[n:]
		}
	}
	if !bytes.Equal(got, data) || writes < 8 {
		t.Errorf("%d bytes in %d writes, want %d", len(got), writes, len(data))
	}
}
