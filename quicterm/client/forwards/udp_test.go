package forwards

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/quicterm/forward"
	"github.com/quicterm/quicterm/quicterm/forward/permit"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const patience = time.Minute

// udp is a forward by UDP over a side pipe that serve serves.
type udp struct {
	t *testing.T
	f *Forwards
	e *entry
}

func newUDP(t *testing.T, target Address, serve func(r io.ReadCloser, w io.WriteCloser)) *udp {
	t.Helper()
	f, _ := serveForwards(t, serve)
	target.UDP = true
	u := &udp{t: t, f: f, e: f.list.enter(Spec{Kind: Local, Listen: Address{Host: "127.0.0.1", UDP: true}, Target: target})}
	if err := f.listen(u.e); err != nil {
		t.Fatal(err)
	}
	return u
}

// serveForwards returns forwards with a side pipe that serve serves.
func serveForwards(t *testing.T, serve func(r io.ReadCloser, w io.WriteCloser)) (*Forwards, *pipe) {
	t.Helper()
	in, there, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	back, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		serve(in, out)
		close(served)
	}()
	f := &Forwards{config: Config{Log: slog.New(slog.DiscardHandler)}, say: func(line string) { t.Error(line) }}
	f.life, f.stop = context.WithCancel(context.Background())
	p := &pipe{done: make(chan struct{})}
	if p.session, err = forward.NewSession(back, there, true); err != nil {
		t.Fatal(err)
	}
	f.pipe = p
	t.Cleanup(func() {
		f.stop()
		f.list.close()
		p.session.Close()
		f.work.Wait()
		<-served
	})
	return f, p
}

// source returns a socket that sends to the forward.
func (u *udp) source() net.Conn {
	u.t.Helper()
	c, err := net.Dial("udp", u.e.listeners[0].(*net.UDPConn).LocalAddr().String())
	if err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return c
}

func (u *udp) wantEcho(c net.Conn, text string) {
	u.t.Helper()
	io.WriteString(c, text)
	got := make([]byte, 100)
	if n, err := c.Read(got); string(got[:n]) != text {
		u.t.Errorf("%q comes back, %v; want %q", got[:n], err, text)
	}
}

// echoUDP returns the address of a target that sends back what it gets.
func echoUDP(t *testing.T) Address {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	go func() {
		buf := make([]byte, forward.MaxDatagram)
		for {
			n, from, err := c.ReadFrom(buf)
			if err != nil {
				return
			}
			c.WriteTo(buf[:n], from)
		}
	}()
	return Address{Host: "127.0.0.1", Port: uint16(c.LocalAddr().(*net.UDPAddr).Port)}
}

func serveAll(r io.ReadCloser, w io.WriteCloser) {
	forward.Serve(context.Background(), r, w, permit.Rules{}, nil)
}

// await waits until a condition holds.
func (u *udp) await(what string, holds func() bool) {
	u.t.Helper()
	for start := time.Now(); !holds(); time.Sleep(time.Millisecond) {
		if time.Since(start) > patience {
			u.t.Fatal("not within a minute: " + what)
		}
	}
}

// Each source gets its own answers. Beyond the limit the one that is idle for longest makes room, and comes back.
func TestFlows(t *testing.T) {
	u := newUDP(t, echoUDP(t), serveAll)
	first, second := u.source(), u.source()
	u.wantEcho(first, "one")
	u.wantEcho(second, "two")
	u.wantEcho(first, "three")
	for i := range maxFlows - 1 { // second makes room
		u.wantEcho(u.source(), fmt.Sprint(i))
	}
	has := func(c net.Conn) bool {
		u.e.flows.mu.Lock()
		defer u.e.flows.mu.Unlock()
		return u.e.flows.of[c.LocalAddr().(*net.UDPAddr).AddrPort()] != nil
	}
	if !has(first) || has(second) {
		t.Errorf("the first source has a flow: %v, the idle one: %v", has(first), has(second))
	}
	u.await("no more flows than the limit", func() bool { return u.e.open.Load() == maxFlows })
	u.wantEcho(second, "four")
	if n := u.e.flows.dropped.Load(); n != 0 {
		t.Errorf("%d datagrams were dropped", n)
	}
}

// Datagrams for which there is no room are dropped, counted, and shown.
func TestDatagramsAreDropped(t *testing.T) {
	end := make(chan struct{})
	u := newUDP(t, Address{Host: "db", Port: 53}, func(r io.ReadCloser, w io.WriteCloser) {
		<-end
		r.Close()
		w.Close()
	})
	defer close(end)
	c := u.source()
	big := make([]byte, 60000)
	u.await("some are dropped", func() bool {
		if _, err := c.Write(big); err != nil {
			t.Fatal(err)
		}
		return u.e.flows.dropped.Load() > 0
	})
	u.await("there is a flow", func() bool { return u.e.open.Load() == 1 })
	if text := u.f.Status()[0].String(); !strings.Contains(text, " open 1, ") || !strings.Contains(text, ", dropped ") {
		t.Error(text)
	}
	u.e.flows.mu.Lock()
	defer u.e.flows.mu.Unlock()
	for _, fl := range u.e.flows.of {
		if n := fl.queued.Load(); n > maxQueuedBytes {
			t.Errorf("%d bytes wait", n)
		}
	}
}

// A refusal is told once, however often a program sends again.
func TestDatagramsRefused(t *testing.T) {
	var asked atomic.Int32
	u := newUDP(t, Address{Host: "db", Port: 53}, func(r io.ReadCloser, w io.WriteCloser) {
		session, err := forward.NewSession(r, w, false)
		if err != nil {
			t.Error(err)
			return
		}
		defer session.Close()
		for {
			stream, err := session.Accept()
			if err != nil {
				return
			}
			wire.Read(stream, wire.MaxMessage)
			wire.Send(stream, &wire.Error{Text: "not permitted"})
			stream.Finish()
			asked.Add(1)
		}
	})
	lines := make(chan string, 100)
	u.f.Tell(func(line string) { lines <- line })
	for n := range int32(3) {
		io.WriteString(u.source(), "x")
		u.await("the flow ends", func() bool { return asked.Load() == n+1 && u.e.open.Load() == 0 })
	}
	const want = "-L udp/127.0.0.1:0: udp/db:53: not permitted"
	if n, line := len(lines), <-lines; n != 1 || line != want {
		t.Errorf("%d lines, the first is %q", n, line)
	}
}

// A flow ends when no datagram has come for two minutes.
func TestFlowIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, source := newFlows(), netip.MustParseAddrPort("127.0.0.1:1")
		fl := fs.begin(t.Context(), nil, source)
		for range 3 {
			time.Sleep(flowIdle - time.Second)
			if fs.find(source) != fl {
				t.Fatal("a flow that is used has ended")
			}
		}
		time.Sleep(flowIdle)
		synctest.Wait()
		if fs.find(source) != nil || fl.ctx.Err() == nil {
			t.Error("a flow that is idle does not end")
		}
	})
}
