package session

import (
	"fmt"
	"testing"
	"time"

	"github.com/quicterm/quicterm/buffer"
)

// A pair is two peers with a carrier between them that takes no time.
type pair struct {
	b     *testing.B
	now   time.Time
	rings [2]*buffer.Ring
	peers [2]*Peer
	ids   [2]CarrierID
	got   int // bytes of payload, by both
}

func newPair(b *testing.B) *pair {
	p := &pair{b: b, now: time.Unix(0, 0)}
	for i := range p.peers {
		p.rings[i] = buffer.NewRing(0)
		p.peers[i] = NewPeer(Config{Log: p.rings[i], Acked: 1, Next: 1, Reorder: 100, Window: 4 << 20, Lazy: i == 0, Patient: i == 1})
	}
	for i, peer := range p.peers {
		p.ids[i] = peer.Up(p.now, 1100, i == 0)
	}
	return p
}

// send adds a frame to the log of end i.
func (p *pair) send(i int, payload []byte) {
	p.rings[i].Append(Stdout, payload)
	p.peers[i].Appended(p.now)
}

// exchange carries what both ends have to say, until they have nothing more.
func (p *pair) exchange() {
	for quiet := false; !quiet; {
		quiet = true
		for i, peer := range p.peers {
			for b := peer.Datagram(p.now, p.ids[i], nil); b != nil; b = peer.Datagram(p.now, p.ids[i], nil) {
				p.peers[1-i].Received(p.ids[1-i])
				p.receive(1-i, DatagramLane, b)
				quiet = false
			}
			for b := peer.Stream(p.now, p.ids[i], 32<<10); b != nil; b = peer.Stream(p.now, p.ids[i], 32<<10) {
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
			err = p.peers[to].Receive(p.now, p.ids[to], lane, f)
		}
		if err != nil {
			p.b.Fatal(err)
		}
		b = b[n:]
	}
	taken := p.peers[to].Take()
	for _, d := range taken {
		p.got += len(d.Payload)
	}
	p.peers[to].Consume(p.now, taken...)
	p.rings[to].Release(p.peers[to].Consumed())
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
