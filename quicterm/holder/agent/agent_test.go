//go:build linux || darwin

package agent

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// A world has agents, each of which answers with its number, and programs.
type world struct {
	t     *testing.T
	s     *switchboard
	dials atomic.Int64
	work  sync.WaitGroup
}

func inWorld(t *testing.T, f func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t}
		w.s = newSwitchboard(func(id wire.AgentID) (net.Conn, error) {
			w.dials.Add(1)
			if id == unreachable {
				return nil, errors.New("nobody listens")
			}
			near, far := net.Pipe()
			w.work.Go(func() {
				defer far.Close()
				for {
					n, err := readLength(far)
					if err == nil {
						_, err = io.CopyN(io.Discard, far, int64(n))
					}
					if err == nil {
						_, err = far.Write([]byte{0, 0, 0, 1, id[0]})
					}
					if err != nil {
						return
					}
				}
			})
			return near, nil
		})
		f(w)
		w.s.close()
		w.work.Wait()
	})
}

var unreachable = wire.AgentID{99}

// program returns a connection of a program.
func (w *world) program() net.Conn {
	near, far := net.Pipe()
	w.work.Go(func() { w.s.serve(far) })
	return near
}

// request returns a message.
func request(number byte, n int) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(n))
	return append(append(b, number), make([]byte, n-1)...)
}

// wantAnswer sends a request and checks the answer, which is nil for the end of the connection.
func (w *world) wantAnswer(why string, c net.Conn, request, want []byte) {
	w.t.Helper()
	sent := make(chan error, 1)
	go func() {
		_, err := c.Write(request)
		sent <- err
	}()
	got := make([]byte, max(len(want), 1))
	n, err := io.ReadFull(c, got)
	if !bytes.Equal(got[:n], want) {
		w.t.Errorf("%s: %x, %v; want %x", why, got[:n], err, want)
	}
	if want != nil {
		if err := <-sent; err != nil {
			w.t.Errorf("%s: %v", why, err)
		}
	}
}

var (
	noKeys   = []byte{0, 0, 0, 5, identitiesAnswer, 0, 0, 0, 0}
	noAnswer = []byte{0, 0, 0, 1, failure}
)

// Programs use the agent that is offered, lose it at once when another one is, and find no keys while none is.
func TestOffer(t *testing.T) {
	inWorld(t, func(w *world) {
		list, sign := request(requestIdentities, 1), request(13, 100)
		early := w.program()
		w.wantAnswer("before", early, list, noKeys)
		w.wantAnswer("before", early, sign, noAnswer)
		w.s.Offer(wire.AgentID{1})
		idle := w.program()
		w.wantAnswer("the first", early, list, []byte{0, 0, 0, 1, 1})
		w.wantAnswer("again", early, sign, []byte{0, 0, 0, 1, 1})
		w.s.Offer(wire.AgentID{1})
		w.wantAnswer("the same", early, sign, []byte{0, 0, 0, 1, 1})
		w.s.Offer(wire.AgentID{2})
		w.wantAnswer("the second, on a connection to the first", early, nil, nil)
		w.wantAnswer("the second, on one that has asked nothing", idle, sign, []byte{0, 0, 0, 1, 2})
		w.s.Offer(wire.AgentID{})
		w.wantAnswer("none", idle, nil, nil)
		late := w.program()
		w.wantAnswer("none", late, list, noKeys)
		w.s.Offer(unreachable)
		w.wantAnswer("one that is not there", late, list, noKeys)
		w.s.Offer(wire.AgentID{3})
		w.wantAnswer("one that came", late, list, []byte{0, 0, 0, 1, 3})
		if n := w.dials.Load(); n != 4 {
			t.Errorf("%d connections to agents, want 4", n)
		}
	})
}

// A program that asks before its client is there waits for that, but not for long.
func TestFirstOffer(t *testing.T) {
	for _, after := range []time.Duration{time.Second, time.Hour} {
		inWorld(t, func(w *world) {
			begun := time.Now()
			time.AfterFunc(after, func() { w.s.Offer(wire.AgentID{1}) })
			want := []byte{0, 0, 0, 1, 1}
			if after > firstTime {
				want = noKeys
			}
			w.wantAnswer("early", w.program(), request(requestIdentities, 1), want)
			if took := time.Since(begun); took != min(after, firstTime) {
				t.Errorf("it waits for %v", took)
			}
		})
	}
}

// A message that is too long ends the connection, whoever sends it, before a byte of it passes.
func TestLengths(t *testing.T) {
	inWorld(t, func(w *world) {
		for _, offered := range []wire.AgentID{{}, {1}} {
			w.s.Offer(offered)
			want := noAnswer
			if offered[0] == 1 {
				want = []byte{0, 0, 0, 1, 1}
			}
			for _, n := range []int{1, 256 << 10} {
				w.wantAnswer("possible", w.program(), request(13, n), want)
			}
			for _, length := range []uint32{0, 256<<10 + 1, 1 << 31} {
				w.wantAnswer("impossible", w.program(), binary.BigEndian.AppendUint32(nil, length), nil)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		agent, far := net.Pipe()
		s := newSwitchboard(func(wire.AgentID) (net.Conn, error) { return agent, nil })
		s.Offer(wire.AgentID{1})
		c, near := net.Pipe()
		go s.serve(near)
		go c.Write(request(13, 1))
		io.ReadFull(far, make([]byte, 5))
		far.Write(binary.BigEndian.AppendUint32(nil, 256<<10+1))
		if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("of an answer that is too long came %d bytes, %v", n, err)
		}
		s.close()
	})
}

// Above the limit, connections are closed, and others take the places of those that end.
func TestManyConnections(t *testing.T) {
	inWorld(t, func(w *world) {
		list := request(requestIdentities, 1)
		var open []net.Conn
		for range maxConns {
			c := w.program()
			w.wantAnswer("below the limit", c, list, noKeys)
			open = append(open, c)
		}
		w.wantAnswer("above it", w.program(), list, nil)
		open[0].Close()
		synctest.Wait()
		w.wantAnswer("when one has ended", w.program(), list, noKeys)
		w.s.close()
		w.wantAnswer("at the end", open[1], nil, nil)
		w.wantAnswer("after it", w.program(), list, nil)
	})
}

// A halfClosed is a program that ends what it sends when the first answer comes, and reads none.
type halfClosed struct {
	net.Conn // nobody reads the other end
	requests io.Reader
	once     sync.Once
	answered chan struct{}
}

func (c *halfClosed) Read(b []byte) (int, error) {
	n, err := c.requests.Read(b)
	if err == io.EOF {
		<-c.answered
	}
	return n, err
}

func (c *halfClosed) Write(b []byte) (int, error) {
	c.once.Do(func() { close(c.answered) })
	return c.Conn.Write(b)
}

// A program that takes no answers, and ends only what it sends, ends with that.
func TestProgramTakesNoAnswers(t *testing.T) {
	inWorld(t, func(w *world) {
		w.s.Offer(wire.AgentID{1})
		near, far := net.Pipe()
		defer near.Close()
		served := make(chan struct{})
		go func() {
			w.s.serve(&halfClosed{Conn: far, requests: bytes.NewReader(request(13, 1)), answered: make(chan struct{})})
			close(served)
		}()
		synctest.Wait()
		select {
		case <-served:
		default:
			t.Error("its connection stays")
		}
	})
}
