package driver

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/session"
)

// A path carries what is sent one way on one lane, in order, after a delay. It loses
// some of it, and none on a stream.
type path struct {
	delay time.Duration
	loss  float64
	sent  chan parcel
	out   chan []byte
	done  chan struct{}
}

type parcel struct {
	at time.Time
	b  []byte
}

func newPath(delay time.Duration, loss float64, done chan struct{}) *path {
	p := &path{delay, loss, make(chan parcel, 10_000), make(chan []byte, 10_000), done}
	go func() {
		for {
			select {
			case parcel := <-p.sent:
				select {
				case <-time.After(time.Until(parcel.at)):
					p.out <- parcel.b
				case <-done:
					return
				}
			case <-done:
				return
			}
		}
	}()
	return p
}

func (p *path) send(b []byte) error {
	if rand.Float64() < p.loss {
		return nil
	}
	select {
	case p.sent <- parcel{time.Now().Add(p.delay), append([]byte(nil), b...)}:
		return nil
	case <-p.done:
		return net.ErrClosed
	}
}

func (p *path) receive() ([]byte, error) {
	select {
	case b := <-p.out:
		return b, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// A delayed is one end of a carrier over paths.
type delayed struct {
	out, in                   *path // of the stream
	datagramsOut, datagramsIn *path // nil without datagrams
	rest                      []byte
	close                     func()
}

// newDelayed returns the two ends of a carrier.
func newDelayed(delay time.Duration, loss float64, datagrams bool) (a, b *delayed) {
	done := make(chan struct{})
	hangUp := sync.OnceFunc(func() { close(done) })
	ab, ba := newPath(delay, 0, done), newPath(delay, 0, done)
	a, b = &delayed{out: ab, in: ba, close: hangUp}, &delayed{out: ba, in: ab, close: hangUp}
	if datagrams {
		a.datagramsOut, a.datagramsIn = newPath(delay, loss, done), newPath(delay, loss, done)
		b.datagramsOut, b.datagramsIn = a.datagramsIn, a.datagramsOut
	}
	return a, b
}

func (c *delayed) Datagrams() bool                  { return c.datagramsOut != nil }
func (c *delayed) SendDatagram(b []byte) error      { return c.datagramsOut.send(b) }
func (c *delayed) ReceiveDatagram() ([]byte, error) { return c.datagramsIn.receive() }
func (c *delayed) Close() error                     { c.close(); return nil }

func (c *delayed) Write(b []byte) (int, error) { return len(b), c.out.send(b) }

func (c *delayed) Read(b []byte) (int, error) {
	if len(c.rest) == 0 {
		rest, err := c.in.receive()
		if err != nil {
			return 0, io.EOF
		}
		c.rest = rest
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// runDelayed runs a carrier between two ends until hangUp is called.
func runDelayed(a, b *end, x, y *delayed) (hangUp func()) { return runOver(a, b, x, y, x.Close) }

func runOver(a, b *end, x, y carrier.Carrier, close func() error) (hangUp func()) {
	var wg sync.WaitGroup
	wg.Go(func() { a.driver.Run(x, true, func(session.CarrierID) {}) })
	wg.Go(func() { b.driver.Run(y, true, func(session.CarrierID) {}) })
	return func() {
		close()
		wg.Wait()
	}
}

// typeKeys types keys that the other end echoes, and waits for each echo.
func typeKeys(client, holder *end, keys int, pace time.Duration) {
	for range keys {
		got, echoed := client.len(), holder.len()
		client.say([]byte("a"))
		holder.await(echoed + 1)
		holder.say([]byte("a"))
		client.await(got + 1)
		time.Sleep(pace)
	}
}

// A key wakes the lane that carries it, and no other: the ack of the echo goes with the
// next key.
func TestWakeUpsOfKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, holder := newEnd(), newEnd()
		client.endpoint = session.NewEndpoint(session.Config{Log: client.log, Acked: 1, Next: 1, Window: 4 << 20, DelayAcks: true})
		holder.endpoint = session.NewEndpoint(session.Config{Log: holder.log, Acked: 1, Next: 1, Window: 4 << 20, PeerDelaysAcks: true})
		client.driver.endpoint, holder.driver.endpoint = client.endpoint, holder.endpoint
		x, y := newDelayed(time.Millisecond, 0, true)
		hangUp := runDelayed(client, holder, x, y)
		defer hangUp()
		typeKeys(client, holder, 100, 50*time.Millisecond) // measures the path
		before := [2]uint64{client.wakeUps(), holder.wakeUps()}
		const keys = 100
		typeKeys(client, holder, keys, 50*time.Millisecond)
		for i, e := range []*end{client, holder} {
			n := e.wakeUps() - before[i]
			t.Logf("end %d: %.2f wake-ups a key", i, float64(n)/keys)
			if n > keys*11/10 {
				t.Errorf("end %d: lanes wake up %d times for %d keys and echoes", i, n, keys)
			}
		}
	})
}

// No lane sleeps while it has something to send: whatever is said, in whatever pauses and
// over however many carriers, all of it arrives soon.
func TestNoLaneSleepsWithWork(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			client, holder := newEnd(), newEnd()
			if seed%3 == 0 {
				client.driver.Compress(On)
				holder.driver.Compress(On)
			}
			said := [2]int{}
			for range 4 {
				var hangUps []func()
				for range 1 + rng.IntN(3) {
					x, y := newDelayed(time.Duration(1+rng.IntN(100))*time.Millisecond, rng.Float64()/3, rng.IntN(3) > 0)
					hangUps = append(hangUps, runDelayed(client, holder, x, y))
				}
				for range 100 {
					i := rng.IntN(2)
					e := []*end{client, holder}[i]
					size := 1 + rng.IntN(30)
					if rng.IntN(10) == 0 {
						size = 1 + rng.IntN(60_000)
					}
					e.say(noise(rng, size))
					said[i] += size
					if rng.IntN(3) > 0 {
						time.Sleep(time.Duration(rng.IntN(200)) * time.Millisecond)
					}
				}
				start := time.Now()
				holder.await(said[0])
				client.await(said[1])
				if took := time.Since(start); took > 10*time.Second {
					t.Errorf("seed %d: the last bytes took %v", seed, took)
				}
				for _, hangUp := range hangUps {
					hangUp()
				}
			}
		})
	}
}

// BenchmarkKey is what the drivers of both ends take for a key and its echo.
func BenchmarkKey(b *testing.B) {
	client, holder := newEnd(), newEnd()
	x, y := newDelayed(0, 0, true)
	hangUp := runDelayed(client, holder, x, y)
	defer hangUp()
	b.ReportAllocs()
	for b.Loop() {
		typeKeys(client, holder, 1, 0)
	}
}
