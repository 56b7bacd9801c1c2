//go:build linux

package work

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/migrate/netmon"
	qtclient "github.com/quicterm/quicterm/quicterm/client"
)

// Returning is clients, each with an address of its own in 127.0.0.0/8 (only Linux has all of these), whose
// network fails for all at once. It comes back after Outage with other ports, so that each needs a new
// connection, and in the time Within after that each client types a key. It yields "back", milliseconds from the
// end of the outage until a client has the answer: how soon the last of them is live again. Holders and clients
// are in this process.
type Returning struct {
	ownSessions
	Clients int
	Outage  time.Duration
	Within  time.Duration
}

func (w Returning) Run(j *Job) []Figure {
	const settle = time.Second
	cfg, err := libraryConfig(j.Host.Addr, j.Host.Dir)
	if err != nil {
		j.T.Fatal(err)
	}
	failing := new(failure)
	inside := newInside(j.T, j.Host, nil)
	sessions := make([]*qtclient.Session, w.Clients)
	outs := make([]*firstByte, w.Clients)
	for i := range sessions {
		cfg.Network = &failingNetwork{failing, netip.AddrFrom4([4]byte{127, 1, byte(i >> 8), byte(i)})}
		inside.client = qtclient.New(cfg)
		outs[i] = &firstByte{came: make(chan time.Time, 1)}
		sessions[i] = inside.open(qtclient.Streams{Stdout: outs[i]})
	}
	time.Sleep(settle)
	j.Begin()
	failing.fail()
	time.Sleep(w.Outage)
	ended := time.Now()
	failing.recover()
	back := Figure{Metric: "back", Unit: "ms", Portable: true}
	var typing sync.WaitGroup
	for i, s := range sessions {
		typing.Go(func() {
			time.Sleep(time.Until(ended.Add(time.Duration(i) * w.Within / time.Duration(w.Clients))))
			outs[i].wait()
			s.Write([]byte("x"))
		})
	}
	for i := range sessions {
		select {
		case at := <-outs[i].came:
			back.add(at.Sub(ended), 0)
		case <-time.After(time.Until(ended.Add(rig.Patience))):
			back.Never = "a client is not live within " + rig.Patience.String()
		}
	}
	typing.Wait()
	j.End()
	return []Figure{back}
}

// A firstByte tells when the first byte comes after wait was called.
type firstByte struct {
	waits atomic.Bool
	came  chan time.Time // capacity 1
}

func (f *firstByte) wait() { f.waits.Store(true) }

func (f *firstByte) Write(b []byte) (int, error) {
	if f.waits.CompareAndSwap(true, false) {
		f.came <- time.Now()
	}
	return len(b), nil
}

// A failure is that of a network. Sockets of before lead nowhere after it.
type failure struct {
	down  atomic.Bool
	fails atomic.Int64
}

func (f *failure) fail() {
	f.fails.Add(1)
	f.down.Store(true)
}

func (f *failure) recover() { f.down.Store(false) }

// A failingNetwork is the loopback interface, with one address of it, until it fails. A daemon limits the
// connections that come from one address.
type failingNetwork struct {
	*failure
	source netip.Addr
}

func (f *failingNetwork) Listen(string) (net.PacketConn, error) {
	socket, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(f.source, 0)))
	return &failingSocket{socket, f.failure, f.fails.Load()}, err
}

func (*failingNetwork) Dial(context.Context, string, netip.AddrPort) (net.Conn, error) {
	return nil, errors.New("this network has no TCP")
}

func (*failingNetwork) Interfaces() ([]string, error) { return nil, nil }

func (f *failingNetwork) Lookup(netip.AddrPort, string) (netmon.Route, error) {
	return netmon.Route{Interface: "lo", Source: f.source}, nil
}

func (*failingNetwork) Watch(ctx context.Context, _ func() netip.AddrPort, _ func(netmon.Event)) error {
	<-ctx.Done()
	return nil
}

// A failingSocket loses what is sent over it, and what arrives, when its network has failed.
type failingSocket struct {
	net.PacketConn
	network *failure
	fails   int64 // of the network when it was opened
}

func (s *failingSocket) lost() bool {
	return s.network.down.Load() || s.network.fails.Load() != s.fails
}

func (s *failingSocket) WriteTo(b []byte, to net.Addr) (int, error) {
	if s.lost() {
		return len(b), nil
	}
	return s.PacketConn.WriteTo(b, to)
}

func (s *failingSocket) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, from, err := s.PacketConn.ReadFrom(b)
		if err != nil || !s.lost() {
			return n, from, err
		}
	}
}
