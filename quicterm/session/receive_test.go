package session

import (
	"bytes"
	"errors"
	"io"
	"math"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/quicterm/quicterm/buffer"
)

// FuzzReceive gives an endpoint frames that no peer would send, over two carriers that
// come and go, while it has something to send itself. Each step is a byte that
// says what happens, and for a frame its number, type, length and payload.
func FuzzReceive(f *testing.F) {
	f.Add([]byte("\x00\x01\x03\x01x\x01\x03\x03\x01z\x00\x02\x03\x01y\x04\x05\x06"))
	for _, g := range goldenPayloads {
		payload := unhex(g.hex)
		if len(payload) > 255 {
			continue
		}
		for _, typ := range []buffer.Type{ack, ping, notice, gap, snapshotPart} {
			f.Add(append([]byte{0x34, 0x34, 5, 0, 0, byte(typ), byte(len(payload))}, payload...))
		}
	}
	for _, next := range []uint64{maxNumber, maxNumber + 1, math.MaxUint64} { // then the frame there
		payload := appendGap(nil, gapInfo{next: next, offset: 1})
		script := append([]byte{0, 0, byte(gap), byte(len(payload))}, payload...)
		f.Add(append(script, "\x00\xe8\x03\x01x\x00\xff\x03\x01x\x00\x00\x03\x01x\x00\x01\x03\x01x"...))
	}
	f.Add([]byte("\x00\x00\x87\x03\x00ab\x00\x00\x87\x02\x02c\x00\x00\x83\x03\x02\x00\x03"))
	f.Fuzz(func(t *testing.T, script []byte) {
		log := buffer.NewRing(0)
		now := time.Unix(1e9, 0)
		p := NewEndpoint(Config{Log: log, Acked: 1, Next: 1, Window: 1 << 20, TakeSnapshots: true,
			Snapshot: func() (uint64, []byte, bool) {
				return log.Next(), make([]byte, log.Next()%7*30_000), log.Next()%5 > 0
			}})
		ids := [2]CarrierID{p.Up(now, 1100, true), p.Up(now, 0, false)}
		next := uint64(1)
		take := func(n int) (b []byte) {
			n = min(n, len(script))
			b, script = script[:n:n], script[n:]
			return b
		}
		for len(script) > 0 {
			step := take(1)[0]
			which := int(step>>3) & 1
			id := ids[which]
			switch step & 7 {
			case 4:
				log.Append(output, make([]byte, int(step>>4)*300))
				p.Appended(now)
			case 5:
				now = now.Add(time.Duration(step>>4) * 50 * time.Millisecond)
				checkSent(t, p.Stream(now, id, 64<<10))
				b := p.Datagram(now, id, nil)
				if len(b) > 1100 {
					t.Fatalf("a datagram of %d bytes", len(b))
				}
				checkSent(t, b)
			case 6:
				p.Ping(id)
				p.Notify(1, "another client")
				p.Skip(uint64(step>>4) * 100)
			case 7:
				log.Release(uint64(step >> 4))
			default:
				head := take(3)
				if len(head) < 3 {
					return
				}
				f := buffer.Frame{Seq: uint64(head[0]), Type: buffer.Type(head[1])}
				switch {
				case head[0] >= 0xf0: // the last numbers that there are
					f.Seq = math.MaxUint64 - uint64(0xff-head[0])
				case head[0] >= 0xe0: // and around the last that is allowed
					f.Seq = maxNumber + uint64(head[0]) - 0xe8
				}
				f.Payload = take(int(head[2]))
				if err := p.Receive(now, id, Lane(step&1), f); err != nil {
					p.Down(now, id)
					ids[which] = p.Up(now, 1100*which, step&2 != 0)
				}
			}
			taken := p.Take(math.MaxInt)
			for i := 1; i < len(taken); i++ {
				if taken[i].Gap != nil && taken[i-1].Gap != nil {
					t.Fatalf("gaps %+v and %+v were not joined", taken[i-1].Gap, taken[i].Gap)
				}
			}
			for _, d := range taken {
				if d.Gap != nil && (d.Gap.From != next || d.Gap.To < d.Gap.From) || d.Gap == nil && d.Seq != next {
					t.Fatalf("got %+v (lost %+v), want frame %d", d.Frame, d.Gap, next)
				}
				next = d.After()
				if next > maxNumber+1 {
					t.Fatalf("went on to frame %d", next)
				}
			}
			if step&16 == 0 {
				p.Consume(now, taken...)
			}
			p.TakeNotices()
			if p.acked > log.Next() || p.consumed > p.acked || p.held < 0 || p.held > p.windowSize || p.toConsume > next {
				t.Fatalf("acked %d, consumed %d of %d; holds %d of %d bytes; done %d of %d",
					p.acked, p.consumed, log.Next(), p.held, p.windowSize, p.toConsume, next)
			}
			p.SendTime(now, id, StreamLane)
			p.SendTime(now, id, DatagramLane)
		}
	})
}

// A log does not continue behind its highest number.
func TestEndOfAllLogs(t *testing.T) {
	now := time.Unix(1e9, 0)
	for _, test := range []struct {
		why    string
		frames []buffer.Frame
	}{
		{"frame", []buffer.Frame{{Seq: maxNumber + 1, Type: input}}},
		{"gap", []buffer.Frame{gapTo(maxNumber+1, 0)}},
		{"offset", []buffer.Frame{gapTo(2, maxNumber+1)}},
		{"frame behind the last", []buffer.Frame{gapTo(maxNumber, 0), {Seq: maxNumber, Type: input}, {Seq: maxNumber + 1, Type: input}}},
	} {
		p := NewEndpoint(Config{Log: buffer.NewRing(0), Acked: 1, Next: 1, Window: 1 << 20})
		id := p.Up(now, 0, true)
		for i, f := range test.frames {
			var protocol *ProtocolError
			err := p.Receive(now, id, DatagramLane, f)
			if last := i == len(test.frames)-1; last != errors.As(err, &protocol) {
				t.Errorf("%s: %v", test.why, err)
			}
		}
	}
}

// A peer whose window ends above the highest position gets the frames behind a skip at once.
func TestEndlessWindow(t *testing.T) {
	now := time.Unix(1e9, 0)
	log := buffer.NewRing(0)
	p := NewEndpoint(Config{Log: log, Acked: 1, Next: 1, Window: 1 << 20})
	id := p.Up(now, 0, true)
	endless := buffer.Frame{Type: ack, Payload: appendAck(nil, ackInfo{received: 1, consumed: 1, windowEnd: math.MaxUint64})}
	if err := p.Receive(now, id, StreamLane, endless); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		log.Append(output, make([]byte, 1000))
	}
	p.Skip(1000)
	var got []byte
	for b := p.Stream(now, id, 64<<10); b != nil; b = p.Stream(now, id, 64<<10) {
		got = append(got, b...)
	}
	checkSent(t, got)
	if want, _ := log.Slice(10, 2000); !bytes.HasSuffix(got, want) {
		t.Errorf("sends %d bytes, which do not end in the last frame", len(got))
	}
}

func gapTo(next, offset uint64) buffer.Frame {
	return buffer.Frame{Type: gap, Payload: appendGap(nil, gapInfo{next: next, offset: offset})}
}

// Any number of gaps that are not taken are one.
func TestGapsAreJoined(t *testing.T) {
	now := time.Unix(1e9, 0)
	p := NewEndpoint(Config{Log: buffer.NewRing(0), Acked: 1, Next: 1, Window: 1 << 20})
	id := p.Up(now, 0, true)
	for n := range uint64(1000) {
		if err := p.Receive(now, id, StreamLane, gapTo(n+2, 10*(n+1))); err != nil {
			t.Fatal(err)
		}
	}
	queue := p.Take(0)
	if len(queue) != 1 || !reflect.DeepEqual(*queue[0].Gap, Gap{From: 1, To: 1000, Bytes: 10_000}) {
		t.Errorf("%d in the queue, the first %+v", len(queue), queue[0].Gap)
	}
	p.Consume(now, queue...)
	if a := p.ackFor(time.Time{}, p.carriers[id]); a.consumed != 1001 || p.Counters().Gaps != 1000 {
		t.Errorf("consumed up to %d, %d gaps counted", a.consumed, p.Counters().Gaps)
	}
}

// Delivered frames wait in one queue: Take removes from its front, Arrived returns its new
// end, DropPending empties it.
func TestPending(t *testing.T) {
	now := time.Unix(1e9, 0)
	p := NewEndpoint(Config{Log: buffer.NewRing(0), Acked: 1, Next: 1, Window: 1 << 20})
	id := p.Up(now, 0, true)
	receive := func(seqs ...uint64) {
		for _, seq := range seqs {
			if err := p.Receive(now, id, StreamLane, buffer.Frame{Seq: seq, Type: input, Payload: make([]byte, 100)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := func(what string, got []Delivered, seqs ...uint64) {
		t.Helper()
		var have []uint64
		for _, d := range got {
			have = append(have, d.Seq)
		}
		if !slices.Equal(have, seqs) {
			t.Errorf("%s: frames %v, want %v", what, have, seqs)
		}
	}
	receive(1, 2, 3)
	want("first look", p.Arrived(), 1, 2, 3)
	want("second look", p.Arrived())
	want("at least one", p.Take(0), 1)
	receive(4, 5, 6)
	want("two fit", p.Take(2*(100+buffer.Overhead)+1), 2, 3)
	want("look at the rest", p.Arrived(), 4, 5, 6)
	receive(7)
	want("all", p.Take(math.MaxInt), 4, 5, 6, 7)
	want("none", p.Take(math.MaxInt))
	want("taken before any look", p.Arrived())
	receive(8, 9)
	if n := p.DropPending(); n != 2 || p.Pending() != 0 {
		t.Errorf("%d frames dropped, %d left, want 2 and 0", n, p.Pending())
	}
	receive(10)
	want("after a drop", p.Arrived(), 10)
}

// Pending frames take memory for themselves, and little for the bytes around them.
func TestMemoryOfWhatWaits(t *testing.T) {
	one := []int{1}
	tests := []struct {
		why    string
		new    func(i int) []int // sizes of new frames, each time before what is of no use
		rounds int
	}{
		{"keys", func(int) []int { return one }, 300},
		{"many empty ones", func(int) []int { return make([]int, 60) }, 300},
		{"keys and bulk", func(i int) []int { return [][]int{one, {60_000}}[i%2] }, 30},
		{"keys behind bulk", func(int) []int { return []int{60_000, 1, 1, 1} }, 15},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			now := time.Unix(1e9, 0)
			p := NewEndpoint(Config{Log: buffer.NewRing(0), Acked: 1, Next: 2, Window: 1 << 20})
			id := p.Up(now, 0, true)
			old := buffer.AppendFrame(nil, buffer.Frame{Seq: 1, Type: input, Payload: make([]byte, 60_000)})
			r, w := io.Pipe()
			go func() {
				defer w.Close()
				seq := uint64(2)
				for i := range test.rounds {
					var b []byte
					for _, n := range test.new(i) {
						b = buffer.AppendFrame(b, buffer.Frame{Seq: seq, Type: input, Payload: make([]byte, n)})
						seq++
					}
					w.Write(append(b, bytes.Repeat(old, 4)...))
				}
			}()
			before := heapSize()
			frames := buffer.NewReader(r)
			for {
				f, err := frames.Next()
				if err != nil {
					break
				}
				if err := p.Receive(now, id, StreamLane, f); err != nil {
					t.Fatal(err)
				}
			}
			if n := heapSize() - before; n > 12<<20 {
				t.Errorf("%d bytes of frames take %d bytes of memory", p.held, n)
			}
			runtime.KeepAlive(p)
		})
	}
}

func heapSize() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// A bulk of frames is not copied.
func TestBulkIsNotCopied(t *testing.T) {
	now := time.Unix(1e9, 0)
	p := NewEndpoint(Config{Log: buffer.NewRing(0), Acked: 1, Next: 1, Window: 1 << 20})
	id := p.Up(now, 0, true)
	for seq := range uint64(200) {
		f := buffer.Frame{Seq: seq + 1, Type: input, Payload: make([]byte, 4096)}
		if err := p.Receive(now, id, StreamLane, f); err != nil {
			t.Fatal(err)
		}
		if got := p.Take(math.MaxInt); &got[0].Payload[0] != &f.Payload[0] {
			t.Fatalf("frame %d was copied", f.Seq)
		}
	}
}

// checkSent checks that what is sent are whole frames, whose payloads make sense.
func checkSent(t *testing.T, b []byte) {
	t.Helper()
	for len(b) > 0 {
		f, n, err := buffer.Parse(b)
		if err != nil {
			t.Fatalf("sends %x: %v", b, err)
		}
		switch f.Type {
		case ack:
			_, _, err = parseAck(f.Payload)
		case gap:
			_, err = parseGap(f.Payload)
		case notice:
			_, err = parseNotice(f.Payload)
		}
		if err != nil {
			t.Fatalf("sends %x: %v", b[:n], err)
		}
		b = b[n:]
	}
}
