package forward

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/quicterm/forward/permit"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const patience = time.Minute

// A pair is a client at a server.
type pair struct {
	t      *testing.T
	client *Session
	served chan error
	stop   func()
}

func newPair(t *testing.T, rules permit.Rules) *pair {
	t.Helper()
	up, down := newPipe(), newPipe()
	p := &pair{t: t, served: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { p.served <- Serve(ctx, up, down, rules, agentAt(t)) }()
	var err error
	if p.client, err = NewSession(down, up, true); err != nil {
		t.Fatal(err)
	}
	p.stop = cancel
	t.Cleanup(func() {
		p.client.Close()
		select {
		case <-p.served:
		case <-time.After(patience):
			t.Error("the server does not end")
		}
		cancel()
	})
	return p
}

// agentAt listens for agents in a directory of the test.
func agentAt(t *testing.T) ListenAgent {
	dir := t.TempDir()
	return func(id wire.AgentID) (net.Listener, error) {
		return net.Listen("unix", filepath.Join(dir, string(id[:1])))
	}
}

// newPipe returns a pipe of the system: it has a buffer.
func newPipe() *duplex {
	r, w, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	return &duplex{r, w}
}

type duplex struct{ r, w *os.File }

func (d *duplex) Read(b []byte) (int, error)  { return d.r.Read(b) }
func (d *duplex) Write(b []byte) (int, error) { return d.w.Write(b) }
func (d *duplex) Close() error                { return errors.Join(d.w.Close(), d.r.Close()) }

// ask opens a stream with a message, and returns it with the answer.
func (p *pair) ask(m wire.Body) (*Stream, wire.Message) {
	p.t.Helper()
	s, err := p.client.Open(context.Background())
	if err != nil {
		p.t.Fatal(err)
	}
	s.SetDeadline(time.Now().Add(patience))
	if err := wire.Send(s, m); err != nil {
		p.t.Fatal(err)
	}
	answer, err := wire.Read(s, maxMessage)
	if err != nil {
		p.t.Fatal(err)
	}
	return s, answer
}

// wantRefusal checks why a message is refused.
func (p *pair) wantRefusal(m wire.Body, why string) {
	p.t.Helper()
	s, answer := p.ask(m)
	defer s.Reset()
	refusal := new(wire.Error)
	if err := answer.Decode(refusal); err != nil || !strings.Contains(refusal.Text, why) {
		p.t.Errorf("%+v: %q, %v; want %q", m, refusal.Text, err, why)
	}
}

// listen returns the address of a listener, and calls f with each connection.
func listen(t *testing.T, f func(*net.TCPConn)) (port uint16) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go f(c.(*net.TCPConn))
		}
	}()
	return uint16(l.Addr().(*net.TCPAddr).Port)
}

// An agent is offered to a login that may, by an id that is whole.
func TestOfferAgent(t *testing.T) {
	id := bytes.Repeat([]byte{'a'}, 16)
	p := newPair(t, permit.None())
	p.wantRefusal(&wire.OfferAgent{Agent: id}, "an ssh agent is not permitted")
	p = newPair(t, permit.Rules{NoDial: true, NoListen: true})
	p.wantRefusal(&wire.OfferAgent{Agent: id[1:]}, "without an id")
	p.wantRefusal(&wire.OfferAgent{Agent: make([]byte, 16)}, "without an id")
	s, answer := p.ask(&wire.OfferAgent{Agent: id, ID: 3})
	defer s.Reset()
	if err := answer.Decode(new(wire.Done)); err != nil {
		t.Error(err)
	}
	p.wantRefusal(&wire.OfferAgent{Agent: id}, "address already in use")
}

// Each way of a connection ends alone.
func TestHalfClose(t *testing.T) {
	p := newPair(t, permit.Rules{})
	port := listen(t, func(c *net.TCPConn) {
		defer c.Close()
		got, _ := io.ReadAll(c)
		c.Write(append([]byte("got "), got...))
	})
	s, _ := p.ask(&wire.Dial{Host: "127.0.0.1", Port: port})
	io.WriteString(s, "all")
	s.CloseWrite()
	if got, err := io.ReadAll(s); string(got) != "got all" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	// The answer comes also if the target has closed its connection before it had all.
	port = listen(t, func(c *net.TCPConn) {
		io.WriteString(c, "enough")
		c.CloseWrite()
		c.CloseRead()
	})
	s, _ = p.ask(&wire.Dial{Host: "127.0.0.1", Port: port})
	if got, err := io.ReadAll(s); string(got) != "enough" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	s.Reset()
}

// An error of a connection is one of the stream, and the other way round.
func TestReset(t *testing.T) {
	p := newPair(t, permit.Rules{})
	ended := make(chan error, 1)
	port := listen(t, func(c *net.TCPConn) {
		if _, err := io.ReadFull(c, make([]byte, 1)); err == nil {
			c.SetLinger(0)
			c.Close()
			return
		}
		_, err := c.Read(make([]byte, 1))
		ended <- err
	})
	s, _ := p.ask(&wire.Dial{Host: "127.0.0.1", Port: port})
	io.WriteString(s, "x")
	if _, err := s.Read(make([]byte, 1)); err == nil || err == io.EOF {
		t.Errorf("after the target's reset: %v", err)
	}
	s, _ = p.ask(&wire.Dial{Host: "127.0.0.1", Port: port})
	s.Reset()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("the target does not hear of a reset")
	}
}

// Streams that nobody reads hold up no others, up to the limit of all.
func TestStalled(t *testing.T) {
	p := newPair(t, permit.Rules{})
	chunk := make([]byte, 64<<10)
	flood := listen(t, func(c *net.TCPConn) {
		defer c.Close()
		for {
			if _, err := c.Write(chunk); err != nil {
				return
			}
		}
	})
	echo := listen(t, func(c *net.TCPConn) {
		io.Copy(c, c)
		c.Close()
	})
	for range 8 {
		s, _ := p.ask(&wire.Dial{Host: "127.0.0.1", Port: flood})
		defer s.Reset()
	}
	for range 20 {
		s, _ := p.ask(&wire.Dial{Host: "127.0.0.1", Port: echo})
		io.WriteString(s, "one")
		s.CloseWrite()
		if got, err := io.ReadAll(s); string(got) != "one" || err != nil {
			t.Fatalf("beside those: %q, %v", got, err)
		}
		s.Reset()
	}
	m := p.client.meter
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.total > maxUnread || len(m.unread) != 8 {
		t.Errorf("%d streams with %d bytes are kept", len(m.unread), m.total)
	}
}

// Of what was not read, no more is kept than the limit, however many streams there are.
func TestUnreadIsBounded(t *testing.T) {
	p := newPair(t, permit.Rules{})
	chunk := make([]byte, firstWindow)
	flood := listen(t, func(c *net.TCPConn) {
		defer c.Close()
		c.Write(chunk)
		io.Copy(io.Discard, c)
	})
	var streams []*Stream
	for range maxUnread/firstWindow + 20 {
		s, err := p.client.Open(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		wire.Send(s, &wire.Dial{Host: "127.0.0.1", Port: flood})
		streams = append(streams, s)
	}
	total := func() int {
		m := p.client.meter
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.total
	}
	for start := time.Now(); total() < maxUnread; time.Sleep(time.Millisecond) {
		if time.Since(start) > patience {
			t.Fatalf("%d bytes came", total())
		}
	}
	if n := total(); n > maxUnread+maxFrame+2*frameCost {
		t.Errorf("%d bytes are kept", n)
	}
	var wg sync.WaitGroup
	for _, s := range streams { // and they come when there is room
		wg.Go(func() {
			defer s.Reset()
			s.SetDeadline(time.Now().Add(patience))
			_, err := wire.Read(s, maxMessage)
			if err == nil {
				_, err = io.ReadFull(s, make([]byte, len(chunk)))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// A half is an end of a connection in memory.
type half struct{ net.Conn }

func (h half) CloseWrite() error { return h.Close() }

// When streams that nobody reads have taken all of the memory, some of them end, and others move their bytes again.
func TestStalledEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up, in := io.Pipe()
		out, down := io.Pipe()
		server, err := NewSession(up, down, false)
		if err != nil {
			t.Fatal(err)
		}
		client, err := NewSession(out, in, true)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				s, err := server.Accept()
				if err != nil {
					return
				}
				wg.Go(func() {
					first := make([]byte, 1)
					if io.ReadFull(s, first); first[0] == 'f' {
						s.Write(make([]byte, firstWindow))
					}
					io.Copy(s, s)
				})
			}
		})
		open := func(first string) *Stream {
			s, err := client.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(s, first)
			return s
		}
		echo := open("e")
		const number = maxUnread/firstWindow + 50
		ends := make(chan int, number)
		var unread []net.Conn
		for i := range number {
			near, far := net.Pipe()
			unread = append(unread, far)
			s := open("f")
			wg.Go(func() {
				Join(s, half{near}, new(Counts), nil)
				ends <- i
			})
		}
		synctest.Wait()
		if !client.meter.full() || len(ends) > 0 {
			t.Errorf("full: %v, and %d streams have ended", client.meter.full(), len(ends))
		}
		start := time.Now()
		sent := bytes.Repeat([]byte("some"), firstWindow)
		wg.Go(func() { echo.Write(sent) })
		got := make([]byte, len(sent))
		echo.SetDeadline(start.Add(patience))
		if _, err := io.ReadFull(echo, got); err != nil || !bytes.Equal(got, sent) {
			t.Errorf("beside streams that nobody reads: %v", err)
		}
		if took := time.Since(start); took > stallTime+time.Second {
			t.Errorf("the others wait for %v", took)
		}
		synctest.Wait()
		if n := len(ends); n == 0 || n > number*2/3 {
			t.Errorf("%d of %d streams have ended", n, number)
		}
		for _, far := range unread {
			far.Close()
		}
		client.Close()
		server.Close()
		wg.Wait()
	})
}

func TestRefusals(t *testing.T) {
	dead := listen(t, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := uint16(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	p := newPair(t, permit.Rules{Dials: []permit.List{{"127.0.0.1:*", "no.such.host.invalid:1"}}, Listens: []permit.List{{"1234"}}})
	p.wantRefusal(&wire.Dial{Host: "127.0.0.1", Port: nobody}, "connection refused")
	p.wantRefusal(&wire.Dial{Host: "localhost", Port: nobody}, "a connection to localhost:")
	p.wantRefusal(&wire.Dial{Path: "/run/x"}, "the unix socket /run/x is not permitted")
	p.wantRefusal(&wire.Listen{Host: "localhost", Port: 1235}, "a listener at localhost:1235 is not permitted")
	p.wantRefusal(&wire.Listen{Host: "localhost"}, "a listener at localhost:0 is not permitted")
	p.wantRefusal(&wire.Listen{Path: "/run/x"}, "the unix socket /run/x is not permitted")
	p.wantRefusal(&wire.List{}, "does not know")
	p = newPair(t, permit.Rules{})
	p.wantRefusal(&wire.Listen{Host: "127.0.0.1", Port: dead}, "address already in use")
	p.wantRefusal(&wire.Dial{Path: filepath.Join(t.TempDir(), "none")}, "no such file")
}

// A listener ends with its stream, and a unix socket of one with the server.
func TestListenersEnd(t *testing.T) {
	p := newPair(t, permit.Rules{})
	s, answer := p.ask(&wire.Listen{Host: "localhost", ID: 3})
	at := new(wire.Listening)
	if err := answer.Decode(at); err != nil || at.Port == 0 || !at.Loopback {
		t.Fatalf("%+v, %v", at, err)
	}
	address := permit.Join("127.0.0.1", at.Port)
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "here")
	accepted, err := p.client.Accept()
	if err != nil {
		t.Fatal(err)
	}
	first := new(wire.Accepted)
	m, err := wire.Read(accepted, maxMessage)
	if err = errors.Join(err, m.Decode(first)); err != nil || first.ID != 3 {
		t.Errorf("%+v, %v", first, err)
	}
	if got := make([]byte, 4); !bytes.Equal(got[:must(io.ReadFull(accepted, got))], []byte("here")) {
		t.Errorf("it brings %q", got)
	}
	s.Reset()
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		if c, err := net.Dial("tcp", address); err != nil {
			break
		} else if c.Close(); time.Since(start) > patience {
			t.Fatal("the listener does not end")
		}
	}
	socket := filepath.Join(t.TempDir(), "socket")
	p.ask(&wire.Listen{Path: socket})
	if _, err := os.Stat(socket); err != nil {
		t.Error(err)
	}
	p.stop()
	p.served <- <-p.served
	if _, err := os.Stat(socket); err == nil {
		t.Error("the socket is left")
	}
}

// A stream with UDP carries datagrams of any size both ways, and ends when nobody listens at the target, or a length is
// too large.
func TestDatagrams(t *testing.T) {
	target, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	go func() {
		buf := make([]byte, MaxDatagram)
		for {
			n, from, err := target.ReadFrom(buf)
			if err != nil {
				return
			}
			target.WriteTo(buf[:n], from)
		}
	}()
	port := uint16(target.LocalAddr().(*net.UDPAddr).Port)
	p := newPair(t, permit.Rules{Dials: []permit.List{{permit.Join("127.0.0.1", port)}}})
	p.wantRefusal(&wire.Dial{Host: "127.0.0.1", Port: port + 1, UDP: true}, "is not permitted")
	s, _ := p.ask(&wire.Dial{Host: "127.0.0.1", Port: port, UDP: true})
	defer s.Reset()
	for _, n := range []int{0, 1, 1500, 9000, MaxDatagram} { // macOS sends none above 9216
		if n > 9000 && runtime.GOOS == "darwin" {
			continue
		}
		b := bytes.Repeat([]byte{byte(n)}, LengthSize+n)
		PutLength(b)
		s.Write(b)
		if got, err := ReadDatagram(s, nil); err != nil || !bytes.Equal(got, b[LengthSize:]) {
			t.Errorf("%d bytes come back of %d: %v", len(got), n, err)
		}
	}
	s.Write([]byte{0xff, 0xff})
	if got, err := ReadDatagram(s, nil); err == nil {
		t.Errorf("after a length of 65535: %d bytes", len(got))
	}
	if got, err := ReadDatagram(strings.NewReader("\xff\xe4"+strings.Repeat("x", 1<<16)), nil); err != errDatagram {
		t.Errorf("a length of %d is read as %d bytes: %v", MaxDatagram+1, len(got), err)
	}

	target.Close()
	s, _ = p.ask(&wire.Dial{Host: "127.0.0.1", Port: port, UDP: true})
	s.Write([]byte{0, 1, 'x'})
	if got, err := ReadDatagram(s, nil); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("nobody listens, and the stream brings %q, %v", got, err)
	}
}

// Flows of datagrams have a bound of their own, as their buffers do not count for the windows. One that ends makes room.
func TestFlowsAreBounded(t *testing.T) {
	p := newPair(t, permit.Rules{Dials: []permit.List{{permit.Join("127.0.0.1", 9)}}})
	dial := &wire.Dial{Host: "127.0.0.1", Port: 9, UDP: true}
	var first *Stream
	for range maxFlows {
		s, _ := p.ask(dial)
		defer s.Reset()
		if first == nil {
			first = s
		}
	}
	p.wantRefusal(dial, "too many flows")
	first.Reset()
	for until := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		s, m := p.ask(dial)
		s.Reset()
		if m.Decode(new(wire.Done)) == nil {
			return
		}
		if time.Now().After(until) {
			t.Fatal("a flow that has ended keeps its place")
		}
	}
}

func must(n int, _ error) int { return n }

// What frames take beside their bytes counts, until they are read, and none is counted longer.
func TestSmallFrames(t *testing.T) {
	m := newMeter(nil, true)
	frame := []byte{0, typeData, 0, flagSYN, 0, 0, 0, 2, 0, 0, 0, 1, 'x'}
	for range 1000 {
		if err := m.count(frame); err != nil {
			t.Fatal(err)
		}
	}
	if want := 1000 * (1 + frameCost); m.total != want {
		t.Errorf("1000 frames of a byte count as %d bytes, want %d", m.total, want)
	}
	m.count(append(frame[:11:11], 4)) // the next one is still to come
	m.read(2, 1000)
	if most := 4 * (1 + frameCost); m.total > most {
		t.Errorf("%d bytes are left of one frame, more than %d", m.total, most)
	}
	m.forget(2)
	if m.total != 0 {
		t.Errorf("%d bytes are left of nothing", m.total)
	}
}

// Whatever comes by the pipe, the meter keeps a bounded number of streams, and all of its bytes pass.
func FuzzMeter(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 0, 1, 0, 4, 0, 0, 0, 2, 0, 0, 0, 0}, uint8(5))
	f.Add(bytes.Repeat([]byte{0, 1, 0, 1, 1}, 40), uint8(3))
	f.Fuzz(func(t *testing.T, b []byte, step uint8) {
		m := newMeter(bytes.NewReader(b), true)
		m.end() // nobody reads the streams here
		var got []byte
		piece := make([]byte, int(step)+1)
		for {
			n, err := m.Read(piece)
			got = append(got, piece[:n]...)
			if err != nil {
				break
			}
		}
		if !bytes.Equal(got, b) {
			t.Errorf("%d of %d bytes have passed", len(got), len(b))
		}
		sum := 0
		for id, n := range m.unread {
			m.read(id, 0)
			sum += n.cost()
		}
		if sum != m.total {
			t.Errorf("%d bytes of streams, %d of all", sum, m.total)
		}
		for id := range m.unread {
			m.forget(id)
		}
		if m.total != 0 {
			t.Errorf("%d bytes are left", m.total)
		}
	})
}
