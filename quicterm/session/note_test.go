package session

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/quicterm/quicterm/buffer"
)

// takeNotes makes acks of end 1 bring notes of the longest kind, which begin with the last frame
// of its log. It returns the highest that end 0 has had. It must be called first.
func (w *world) takeNotes() (highest *uint64) {
	highest = new(uint64)
	a, b := w.ends[0], w.ends[1]
	b.endpoint = NewEndpoint(Config{Log: b.ring, Acked: 1, Next: 1, Window: 300 << 10, PeerDelaysAcks: true,
		Note: func(time.Time) []byte {
			return append(binary.BigEndian.AppendUint64(nil, b.ring.Next()-1), make([]byte, MaxNote-8)...)
		}})
	a.endpoint = NewEndpoint(Config{Log: a.ring, Acked: 1, Next: 1, Window: 300 << 10, DelayAcks: true,
		TakeNote: func(received uint64, note []byte) {
			out := binary.BigEndian.Uint64(note)
			if received > a.ring.Next() || out >= b.ring.Next() || len(note) != MaxNote {
				w.t.Errorf("a note of %d bytes, with %d received, tells of %d", len(note), received, out)
			}
			*highest = max(*highest, out)
		}})
	return highest
}

// parseAll returns the frames that b has.
func parseAll(t *testing.T, b []byte) (frames []buffer.Frame) {
	t.Helper()
	for len(b) > 0 {
		f, n, err := buffer.Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		frames, b = append(frames, f), b[n:]
	}
	return frames
}

// wantNote checks that b begins with an ack whose note tells of a frame.
func wantNote(t *testing.T, why string, b []byte, out uint64) {
	t.Helper()
	frames := parseAll(t, b)
	if len(frames) == 0 || frames[0].Type != ack {
		t.Fatalf("%s: %d frames that do not begin with an ack", why, len(frames))
	}
	_, note, err := parseAck(frames[0].Payload)
	if err != nil || len(note) != MaxNote || binary.BigEndian.Uint64(note) != out {
		t.Fatalf("%s: an ack with the note %x, %v", why, note, err)
	}
}

// A note is never behind the frames that it tells of, and each copy of them brings it.
func TestNoteStandsBeforeFrames(t *testing.T) {
	w := newWorld(t, 1)
	w.takeNotes()
	w.connect()
	w.run(time.Second)
	e, id := w.ends[1].endpoint, w.links[0].ids[1]
	w.append(1, 10)
	wantNote(t, "the first copy", e.Datagram(w.now, id, nil), 1)
	w.append(1, 10)
	wantNote(t, "with one more frame", e.Datagram(w.now, id, nil), 2)
	at := e.SendTime(w.now, id, DatagramLane)
	b := e.Datagram(at, id, nil)
	wantNote(t, "sent again", b, 2)
	if n := len(parseAll(t, b)); n != 3 {
		t.Errorf("sent again with %d frames", n)
	}
	w.now = at

	w.append(1, 3000)
	w.append(1, 3000)
	for e.carriers[id].out.cursor < 4 {
		if b := e.Stream(w.now, id, 3000); parseAll(t, b)[0].Type == ack {
			t.Error("an ack in the middle of what goes to the stream")
		}
	}
	wantNote(t, "the end of the stream", e.Stream(w.now, id, 3000), 4)
}

// AckNow sends a note that nothing else would.
func TestAckNow(t *testing.T) {
	w := newWorld(t, 1)
	w.takeNotes()
	w.ends[1].endpoint.AckNow(w.now) // without a carrier
	w.connect()
	w.run(time.Second)
	e, id := w.ends[1].endpoint, w.links[0].ids[1]
	if at := e.SendTime(w.now, id, DatagramLane); !at.IsZero() {
		t.Fatalf("something is to be sent at %v", at)
	}
	e.AckNow(w.now)
	wantNote(t, "on its own", e.Datagram(w.now, id, nil), 0)
}

// AskAck brings an ack, and so a note, within a round trip.
func TestAskAck(t *testing.T) {
	for _, datagrams := range []bool{true, false} {
		w := newWorld(t, 1)
		w.takeNotes()
		w.datagrams = datagrams
		w.ends[0].endpoint.AskAck() // without a carrier
		w.connect()
		w.run(time.Second)
		taken := 0
		w.ends[0].endpoint.config.TakeNote = func(uint64, []byte) { taken++ }
		w.ends[0].endpoint.AskAck()
		w.flush()
		w.run(2*w.delay + time.Millisecond)
		if taken != 1 {
			t.Errorf("datagrams %v: %d notes came", datagrams, taken)
		}
	}
}

// Without Note, no ack stands before a tail that does not need it.
func TestNoNote(t *testing.T) {
	w := newWorld(t, 1)
	w.connect()
	w.run(time.Second)
	w.append(1, 10)
	if frames := parseAll(t, w.ends[1].endpoint.Datagram(w.now, w.links[0].ids[1], nil)); frames[0].Type == ack {
		t.Error("an ack that nothing asks for")
	}
}

// Whatever happens, the last note is that of the last frame when that has come.
func TestNotesInChaos(t *testing.T) {
	for seed := range uint64(30) {
		w := newWorld(t, seed)
		w.datagrams = seed%5 != 0
		highest := w.takeNotes()
		w.chaos(200)
		if last := w.ends[1].ring.Next() - 1; *highest != last {
			t.Fatalf("seed %d: the last note tells of frame %d of %d", seed, *highest, last)
		}
	}
}

// An ack with bytes that no TakeNote takes is an ack as any other.
func TestNoteIgnored(t *testing.T) {
	w := newWorld(t, 1)
	w.takeNotes()
	w.ends[0].endpoint.config.TakeNote = nil
	w.connect()
	w.append(0, 10)
	w.append(1, 10)
	w.settle(time.Minute)
	var payload bytes.Buffer
	payload.Write(appendAck(nil, ackInfo{received: 1, consumed: 1}))
	payload.WriteString("a later version")
	if a, note, err := parseAck(payload.Bytes()); err != nil || a.received != 1 || string(note) != "a later version" {
		t.Errorf("%+v, %q, %v", a, note, err)
	}
}
