package driver

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	_ "github.com/quicterm/quicterm/bench/bubble"
	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A pipe is one end of a carrier without datagrams, within this process.
type pipe struct {
	net.Conn
	written *atomic.Int64 // bytes that were, or nil
}

func (p pipe) Datagrams() bool                  { return false }
func (p pipe) SendDatagram([]byte) error        { return nil }
func (p pipe) ReceiveDatagram() ([]byte, error) { select {} }

func (p pipe) Write(b []byte) (int, error) {
	if p.written != nil {
		p.written.Add(int64(len(b)))
	}
	return p.Conn.Write(b)
}

// An end is one end of a session whose payloads are bytes.
type end struct {
	mu       sync.Mutex
	changed  *sync.Cond
	log      *buffer.Ring
	endpoint *session.Endpoint
	driver   *Driver
	got      bytes.Buffer
	written  atomic.Int64
}

func newEnd() *end {
	e := &end{log: buffer.NewRing(64 << 20)}
	e.changed = sync.NewCond(&e.mu)
	e.endpoint = session.NewEndpoint(session.Config{Log: e.log, Acked: 1, Next: 1, Window: 4 << 20})
	e.driver = New(&e.mu, e.endpoint, func() {
		frames := e.endpoint.Take(math.MaxInt)
		for _, d := range frames {
			e.got.Write(d.Payload)
		}
		if len(frames) > 0 {
			e.endpoint.Consume(time.Now(), frames...)
		}
		e.log.Release(e.endpoint.Consumed())
		e.driver.Wake()
		e.changed.Broadcast()
	})
	return e
}

func (e *end) say(b []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.log.Append(wire.Stdout, b)
	e.endpoint.Appended(time.Now())
	e.driver.Wake()
}

// len returns how many bytes have come.
func (e *end) len() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.got.Len()
}

// wakeUps returns how often lanes were woken.
func (e *end) wakeUps() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.driver.wakeUps
}

// await waits until n bytes have come.
func (e *end) await(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.got.Len() < n {
		e.changed.Wait()
	}
}

// connect connects two ends until hangUp is called.
func connect(t *testing.T, a, b *end) (hangUp func()) {
	x, y := net.Pipe()
	var wg sync.WaitGroup
	run := func(e *end, c net.Conn) {
		wg.Go(func() {
			err := e.driver.Run(pipe{c, &e.written}, true, func(session.CarrierID) {})
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) && !errors.Is(err, buffer.ErrTruncated) {
				t.Errorf("carrier ended: %v", err)
			}
		})
	}
	run(a, x)
	run(b, y)
	return func() {
		x.Close()
		wg.Wait()
	}
}

// Both ways, over one carrier after the other: all arrives once, shorter only if
// the client has asked for that.
func TestStreams(t *testing.T) {
	for _, test := range []struct {
		why       string
		mode      Compression
		less      int // how many times less than was said is written at least
		writesAll bool
	}{
		{"on", On, 3, false},
		{"auto", Auto, 0, false}, // as the machine's load has it
		{"off", Off, 0, true},
	} {
		t.Run(test.why, func(t *testing.T) {
			client, holder := newEnd(), newEnd()
			client.driver.Compress(test.mode)
			holder.driver.Compress(test.mode)
			rng := rand.New(rand.NewPCG(1, 0))
			var said bytes.Buffer
			for range 8 {
				hangUp := connect(t, client, holder)
				for range 20 {
					var b []byte
					switch rng.IntN(8) {
					case 0:
						b = noise(rng, 1+rng.IntN(20_000))
					case 1:
						b = buildLog(rng, 1+rng.IntN(100))
					default:
						b = buildLog(rng, 1+rng.IntN(60_000))
					}
					said.Write(b)
					client.say(b)
					holder.say(b)
				}
				// Most is still on its way then.
				client.await(said.Len() / 2)
				holder.await(said.Len() / 2)
				hangUp()
			}
			hangUp := connect(t, client, holder)
			for _, e := range []*end{client, holder} {
				e.await(said.Len())
			}
			// How much was lost with a carrier and written again depends on the
			// machine's load: what is written is counted from here.
			client.written.Store(0)
			holder.written.Store(0)
			last := buildLog(rng, 1<<20)
			said.Write(last)
			for part := range slices.Chunk(last, 32<<10) {
				client.say(part)
				holder.say(part)
			}
			for _, e := range []*end{client, holder} {
				e.await(said.Len())
			}
			hangUp()
			for _, e := range []*end{client, holder} {
				if !bytes.Equal(e.got.Bytes(), said.Bytes()) {
					t.Errorf("%d bytes arrived, not the %d that were said", e.got.Len(), said.Len())
				}
				written := int(e.written.Load())
				if test.writesAll && written < len(last) || written*test.less > len(last) {
					t.Errorf("%d bytes said, %d written", len(last), written)
				}
			}
		})
	}
}

// The memory of compression is freed when a stream is idle for a while, at both ends,
// and nothing is missed when it is not idle any more.
func TestStreamsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, holder := newEnd(), newEnd()
		client.driver.Compress(On)
		holder.driver.Compress(On)
		hangUp := connect(t, client, holder)
		defer hangUp()
		log := buildLog(rand.New(rand.NewPCG(1, 0)), 10_000)
		said := 0
		burst := func() {
			said += len(log)
			for _, e := range []*end{client, holder} {
				e.mu.Lock()
				e.got.Grow(2 * len(log))
				e.mu.Unlock()
				e.say(log)
			}
			client.await(said)
			holder.await(said)
			synctest.Wait()
		}
		memory := func() int64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		burst()
		time.Sleep(2 * idleStream)
		before := memory()
		burst()
		time.Sleep(idleStream - time.Second)
		during := memory() - before
		time.Sleep(2 * time.Second)
		after := memory() - before
		t.Logf("%d bytes while compressed, %d when idle", during, after)
		if during < 2*500<<10 {
			t.Errorf("a burst takes %d bytes: is anything compressed?", during)
		}
		if after > 100<<10 {
			t.Errorf("%d bytes are left of a burst", after)
		}
		burst()
		if written := holder.written.Load(); written > 3*int64(len(log))/2 {
			t.Errorf("%d bytes written for %d", written, 3*len(log))
		}
	})
}

// A speaker is a carrier whose other end sends bytes and hangs up.
type speaker struct{ *bytes.Reader }

func (speaker) Datagrams() bool                  { return false }
func (speaker) SendDatagram([]byte) error        { return nil }
func (speaker) ReceiveDatagram() ([]byte, error) { select {} }
func (speaker) Write(b []byte) (int, error)      { return len(b), nil }
func (speaker) Close() error                     { return nil }

// hear runs a carrier whose other end sends b, and returns why that has ended.
func (e *end) hear(b []byte) error {
	return e.driver.Run(speaker{bytes.NewReader(b)}, true, func(session.CarrierID) {})
}

// A peer that breaks the rules of compression loses its carrier.
func TestStreamsBadInput(t *testing.T) {
	control := func(typ buffer.Type, payload ...byte) []byte {
		return buffer.AppendFrame(nil, buffer.Frame{Type: typ, Payload: payload})
	}
	packed := func(frames []byte) []byte {
		frame, ok := new(packer).pack(time.Time{}, frames)
		if !ok {
			t.Fatal("not packed")
		}
		return bytes.Clone(frame)
	}
	frames := framed(1, bytes.Repeat([]byte("all work and no play\n"), 1000))
	bad := frames[:len(frames)-1]
	flipped := bytes.Clone(frames)
	flipped[100] ^= 1
	var protocol *session.ProtocolError
	for _, test := range []struct {
		why      string
		mode     Compression
		said     []byte
		protocol bool
		want     error
	}{
		{"not asked for", Off, packed(frames), true, nil},
		{"in another", Auto, packed(append(packed(frames), frames...)), true, nil},
		{"garbage", Auto, control(session.Compressed, []byte("garbage")...), false, ErrCompressed},
		{"half a frame in it", Auto, packed(bad), false, ErrCompressed},
		{"a bit is wrong", Auto, packed(flipped), false, buffer.ErrChecksum},
		{"as it should be", Auto, packed(frames), false, io.EOF},
		{"of a later version", 77, packed(frames), false, io.EOF},
	} {
		e := newEnd()
		e.driver.Compress(test.mode)
		err := e.hear(test.said)
		if test.protocol && !errors.As(err, &protocol) || test.want != nil && !errors.Is(err, test.want) {
			t.Errorf("%s: %v", test.why, err)
		}
		if want := test.want == io.EOF; want != (e.got.Len() == 21_000) {
			t.Errorf("%s: %d bytes came through", test.why, e.got.Len())
		}
	}
	// A frame that is compressed is none for a datagram.
	e := newEnd()
	s := e.endpoint.Up(time.Now(), 1100, true)
	if err := e.driver.receiveDatagram(s, packed(frames)); !errors.As(err, &protocol) {
		t.Errorf("in a datagram: %v", err)
	}
	// Whatever is cut off, what came before it is there.
	said := packed(frames)
	for n := range said {
		e := newEnd()
		e.driver.Compress(Auto)
		if err := e.hear(said[:n]); !errors.Is(err, io.EOF) && !errors.Is(err, buffer.ErrTruncated) || e.got.Len() > 0 {
			t.Errorf("%d of %d bytes: %v, %d came through", n, len(said), err, e.got.Len())
		}
	}
}

// The first write is compressed.
func TestFirstWriteIsCompressed(t *testing.T) {
	near, holder := newEnd(), newEnd()
	near.driver.Compress(Auto)
	holder.driver.Compress(Auto)
	log := bytes.Repeat([]byte("a screen with much text "), 2000)
	holder.say(log)
	hangUp := connect(t, near, holder)
	near.await(len(log))
	hangUp()
	if n := holder.written.Load(); n > int64(len(log)/4) {
		t.Errorf("%d bytes were sent for %d", n, len(log))
	}
}
