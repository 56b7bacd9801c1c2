package session

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/quicterm/quicterm/buffer"
)

// A pair is two endpoints with a carrier between them that takes no time.
type pair struct {
	b         *testing.B
	now       time.Time
	rings     [2]*buffer.Ring
	endpoints [2]*Endpoint
	ids       [2]CarrierID
	got       int // bytes of payload, by both
}

func newPair(b *testing.B) *pair {
	p := &pair{b: b, now: time.Unix(0, 0)}
	for i := range p.endpoints {
		p.rings[i] = buffer.NewRing(0)
		p.endpoints[i] = NewEndpoint(Config{Log: p.rings[i], Acked: 1, Next: 1, Window: 4 << 20, DelayAcks: i == 0, PeerDelaysAcks: i == 1})
	}
	for i, e := range p.endpoints {
		p.ids[i] = e.Up(p.now, 1100, i == 0)
	}
	return p
}

// send adds a frame to the log of end i.
func (p *pair) send(i int, payload []byte) {
	p.rings[i].Append(output, payload)
	p.endpoints[i].Appended(p.now)
}

// exchange carries what both ends have to say, until they have nothing more.
func (p *pair) exchange() {
	for quiet := false; !quiet; {
		quiet = true
		for i, e := range p.endpoints {
			for b := e.Datagram(p.now, p.ids[i], nil); b != nil; b = e.Datagram(p.now, p.ids[i], nil) {
				p.endpoints[1-i].DatagramReceived(p.ids[1-i])
				p.receive(1-i, DatagramLane, b)
				quiet = false
			}
			for b := e.Stream(p.now, p.ids[i], 32<<10); b != nil; b = e.Stream(p.now, p.ids[i], 32<<10) {
				p.receive(1-i, StreamLane, b)
				quiet = false
			}
		}
	}
}

func (p *pair) receive(to int, lane Lane, b []byte) {
	for len(b) > 0 {
		f, n, err := buffer.Parse(b)
		if err == nil {
			err = p.endpoints[to].Receive(p.now, p.ids[to], lane, f)
		}
		if err != nil {
			p.b.Fatal(err)
		}
		b = b[n:]
	}
	taken := p.endpoints[to].Take(math.MaxInt)
	for _, d := range taken {
		p.got += len(d.Payload)
	}
	p.endpoints[to].Consume(p.now, taken...)
	p.rings[to].Release(p.endpoints[to].Consumed())
}

// BenchmarkEcho is what both ends compute for a key and its echo, 200 ms after those
// before.
func BenchmarkEcho(b *testing.B) {
	p := newPair(b)
	key := []byte("a")
	b.ReportAllocs()
	keys := 0
	for b.Loop() {
		p.now = p.now.Add(200 * time.Millisecond)
		p.exchange() // acks of the key before
		p.send(0, key)
		p.exchange()
		p.send(1, key)
		p.exchange()
		keys++
	}
	if p.got != 2*keys {
		b.Fatalf("%d of %d keys and echoes arrived", p.got, 2*keys)
	}
}

// BenchmarkOutput is what both ends compute for output in frames as a holder makes
// them.
func BenchmarkOutput(b *testing.B) {
	for _, size := range []int{4 << 10, 32 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			p := newPair(b)
			payload := make([]byte, size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			sent := 0
			for b.Loop() {
				p.now = p.now.Add(time.Millisecond)
				p.send(1, payload)
				p.exchange()
				sent += size
			}
			for range 100 { // what waits for an ack
				p.now = p.now.Add(100 * time.Millisecond)
				p.exchange()
			}
			if p.got != sent {
				b.Fatalf("%d of %d bytes arrived", p.got, sent)
			}
		})
	}
}
