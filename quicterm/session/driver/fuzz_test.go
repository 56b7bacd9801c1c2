package driver_test

import (
	"bytes"
	"io"
	"math"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/session/driver"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A script is a carrier whose other end sends fixed bytes and then
// hangs up.
type script struct {
	stream    io.Reader
	datagrams [][]byte
	read      chan struct{} // closed when all datagrams have been taken
	done      chan struct{} // closed by Close
	close     func()
}

// newScript makes a script of what comes on both lanes. Datagrams follow each
// other with a byte before each that tells its length.
func newScript(stream, datagrams []byte) *script {
	s := &script{stream: bytes.NewReader(stream), read: make(chan struct{}), done: make(chan struct{})}
	s.close = sync.OnceFunc(func() { close(s.done) })
	for len(datagrams) > 0 {
		n := min(int(datagrams[0]), len(datagrams)-1)
		s.datagrams = append(s.datagrams, datagrams[1:1+n])
		datagrams = datagrams[1+n:]
	}
	return s
}

func (s *script) Datagrams() bool             { return true }
func (s *script) Write(b []byte) (int, error) { return len(b), nil }
func (s *script) SendDatagram([]byte) error   { return nil }
func (s *script) Close() error                { s.close(); return nil }

// Read gives the stream after the datagrams.
func (s *script) Read(b []byte) (int, error) {
	select {
	case <-s.read:
		return s.stream.Read(b)
	case <-s.done:
		return 0, net.ErrClosed
	}
}

func (s *script) ReceiveDatagram() ([]byte, error) {
	if len(s.datagrams) > 0 {
		b := s.datagrams[0]
		s.datagrams = s.datagrams[1:]
		return b, nil
	}
	close(s.read)
	<-s.done
	return nil, net.ErrClosed
}

// sealed makes frames of bytes that describe them: number, type, length of the
// payload, payload. So what is fuzzed gets past the checksum.
func sealed(b []byte) []byte {
	var out []byte
	for len(b) >= 3 {
		n := min(int(b[2]), len(b)-3)
		out = buffer.AppendFrame(out, buffer.Frame{Seq: uint64(b[0]), Type: buffer.Type(b[1]), Payload: b[3 : 3+n]})
		b = b[3+n:]
	}
	return out
}

// Whatever comes, a carrier ends, what was received is in order and gone through
// once, and another carrier can continue from there.
func FuzzRun(f *testing.F) {
	f.Add(false, buffer.AppendFrame(nil, buffer.Frame{Seq: 1, Type: wire.Stdin, Payload: []byte("x")}), []byte{})
	f.Add(true, []byte("\x01\x03\x02hi\x02\x03\x01!"), []byte("\x04\x02\x03\x01!"))
	f.Fuzz(func(t *testing.T, seal bool, stream, datagrams []byte) {
		if seal {
			stream = sealed(stream)
			all := sealed(datagrams)
			datagrams = nil
			for len(all) > 0 {
				_, n, err := buffer.Parse(all)
				if err != nil {
					t.Fatal(err)
				}
				if n < 256 {
					datagrams = append(append(datagrams, byte(n)), all[:n]...)
				}
				all = all[n:]
			}
		}
		var mu sync.Mutex
		log := buffer.NewRing(0)
		endpoint := session.NewEndpoint(session.Config{Log: log, Acked: 1, Next: 1, Window: 1 << 20})
		next, waiting := uint64(1), []session.Delivered(nil)
		var p *driver.Driver
		p = driver.New(&mu, endpoint, func() {
			for _, d := range endpoint.Take(math.MaxInt) {
				if d.Gap != nil && d.Gap.From != next || d.Gap == nil && d.Seq != next {
					t.Errorf("got %+v, want frame %d", d, next)
				}
				next = d.After()
				waiting = append(waiting, d)
			}
			if len(waiting) > 3 { // some of it is dealt with later
				endpoint.Consume(time.Now(), waiting...)
				waiting = nil
			}
			log.Append(wire.Stdout, []byte("answer"))
			endpoint.Appended(time.Now())
			p.Wake()
		})
		run := func(c carrier.Carrier) {
			t.Helper()
			ended := make(chan error, 1)
			go func() { ended <- p.Run(c, true, func(session.CarrierID) {}) }()
			select {
			case err := <-ended:
				if err == nil {
					t.Error("no reason why the carrier has ended")
				}
			case <-time.After(20 * time.Second):
				t.Fatal("the carrier does not end")
			}
		}
		run(newScript(stream, datagrams))
		if next > 1<<62 {
			return // it is at the end of all logs
		}
		before := next
		run(newScript(buffer.AppendFrame(nil, buffer.Frame{Seq: next, Type: wire.Stdin}), nil))
		if next <= before && endpoint.Counters().Reordered == 0 {
			t.Errorf("another carrier cannot continue from frame %d", before)
		}
	})
}
