package session

import (
	"testing"
	"time"

	"github.com/quicterm/quicterm/buffer"
)

// FuzzReceive gives a peer frames that no peer would send, over two carriers that
// come and go, while it has something to send itself. Each step is a byte that
// says what happens, and for a frame its number, type, length and payload.
func FuzzReceive(f *testing.F) {
	f.Add([]byte("\x00\x01\x03\x01x\x01\x03\x03\x01z\x00\x02\x03\x01y\x04\x05\x06"))
	for _, g := range goldenPayloads {
		payload := unhex(g.hex)
		if len(payload) > 255 {
			continue
		}
		for _, typ := range []buffer.Type{ack, ping, notice, gap} {
			f.Add(append([]byte{0x34, 0x34, 5, 0, 0, byte(typ), byte(len(payload))}, payload...))
		}
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		log := buffer.NewRing(0)
		now := time.Unix(1e9, 0)
		p := NewPeer(Config{Log: log, Acked: 1, Next: 1, Reorder: 100, Window: 1 << 20})
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
				log.Append(Stdout, make([]byte, int(step>>4)*300))
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
				p.Notify(Displaced, "somebody")
			case 7:
				log.Release(uint64(step >> 4))
			default:
				head := take(3)
				if len(head) < 3 {
					return
				}
				f := buffer.Frame{Seq: uint64(head[0]), Type: buffer.Type(head[1])}
				f.Payload = take(int(head[2]))
				if err := p.Receive(now, id, Lane(step&1), f); err != nil {
					p.Down(now, id)
					ids[which] = p.Up(now, 1100*which, step&2 != 0)
				}
			}
			taken := p.Take()
			for _, d := range taken {
				if d.Lost != nil && (d.Lost.From != next || d.Lost.To < d.Lost.From) || d.Lost == nil && d.Seq != next {
					t.Fatalf("got %+v (lost %+v), want frame %d", d.Frame, d.Lost, next)
				}
				next = d.After()
				if next > 1<<62 {
					return // it has said itself that its log is at its end
				}
			}
			if step&16 == 0 {
				p.Consume(now, taken...)
			}
			p.TakeNotices()
			if p.acked > log.Next() || p.consumed > p.acked || p.held < 0 || p.held > p.capacity || p.done > next {
				t.Fatalf("acked %d, consumed %d of %d; holds %d of %d bytes; done %d of %d",
					p.acked, p.consumed, log.Next(), p.held, p.capacity, p.done, next)
			}
			p.Deadline(id)
		}
	})
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
			_, err = parseAck(f.Payload)
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
