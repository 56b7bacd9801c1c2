package monitor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/unixsock"
	"github.com/quicterm/quicterm/quicterm/machine/memory"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A Remote is a monitor in another process, the one that has started this one. Its methods are those
// of a [Monitor].
type Remote struct {
	channel *channel
	life    context.Context // of Run
	failed  func(error)     // ends Run

	mu      sync.Mutex
	network Network                       // when it has started
	serving map[uint64]context.CancelFunc // sockets
	work    sync.WaitGroup
}

// NewRemote returns the monitor at the other end of a socket, which it owns.
func NewRemote(socket *net.UnixConn) *Remote {
	r := &Remote{serving: make(map[uint64]context.CancelFunc)}
	r.channel = newChannel(socket, true, r.answer)
	return r
}

// Inherited returns the monitor that has started this process.
func Inherited() (*Remote, error) {
	f := os.NewFile(ChannelFD, "monitor")
	if f == nil {
		return nil, errors.New("the daemon of root starts this command")
	}
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	socket, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, errors.New("the daemon of root starts this command")
	}
	return NewRemote(socket), nil
}

// Run does what the monitor asks, until ctx ends, the monitor is gone, or a socket fails. The
// function start gets the setup, and returns the network half.
func (r *Remote) Run(ctx context.Context, start func(*Setup) (Network, error)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.life, r.failed = ctx, cancel
	var reading sync.WaitGroup
	defer reading.Wait()
	defer r.channel.close()
	reading.Go(func() { cancel(r.channel.run(ctx)) })
	setup := new(Setup)
	if err := r.ask(ctx, kindSetup, nil, setup); err != nil {
		return err
	}
	network, err := start(setup)
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.network = network
	r.mu.Unlock()
	if err := r.ask(ctx, kindReady, nil, nil); err != nil {
		return err
	}
	err = network.Run(ctx)
	r.work.Wait()
	for _, usual := range []error{nil, io.EOF, syscall.ECONNRESET, context.Canceled} { // the monitor has ended, or says so
		if errors.Is(context.Cause(ctx), usual) {
			return err
		}
	}
	return context.Cause(ctx)
}

// ask calls the monitor.
func (r *Remote) ask(ctx context.Context, k kind, body, answer any) error {
	files, err := r.channel.call(ctx, k, body, answer)
	closeFiles(files)
	return err
}

// Sign is [Monitor.Sign].
func (r *Remote) Sign(ctx context.Context, m *Sign) (signature []byte, err error) {
	err = r.ask(ctx, kindSign, m, &signature)
	return signature, err
}

// Offer is [Monitor.Offer].
func (r *Remote) Offer(ctx context.Context, m *Offer) (*Verdicts, error) {
	v := new(Verdicts)
	return v, r.ask(ctx, kindOffer, m, v)
}

// Prove is [Monitor.Prove].
func (r *Remote) Prove(ctx context.Context, m *Proof) (*Login, error) {
	return r.login(ctx, kindProve, m)
}

// Redeem is [Monitor.Redeem].
func (r *Remote) Redeem(ctx context.Context, m *Token) (*Login, error) {
	return r.login(ctx, kindRedeem, m)
}

func (r *Remote) login(ctx context.Context, k kind, m any) (*Login, error) {
	l := new(Login)
	if err := r.ask(ctx, k, m, l); err != nil {
		return nil, err
	}
	return l, nil
}

// Leave is [Monitor.Leave].
func (r *Remote) Leave(id LoginID) {
	r.channel.send(kindLeave, r.channel.next.Add(1), id, nil) // an error is the end of all logins
}

// Check is [Monitor.Check].
func (r *Remote) Check(ctx context.Context, m *By) error { return r.ask(ctx, kindCheck, m, nil) }

// List is [Monitor.List].
func (r *Remote) List(ctx context.Context, m *By) (*wire.Listing, error) {
	l := new(wire.Listing)
	return l, r.ask(ctx, kindList, m, l)
}

// Describe is [Monitor.Describe].
func (r *Remote) Describe(ctx context.Context, m *By) (*wire.Description, error) {
	d := new(wire.Description)
	return d, r.ask(ctx, kindDescribe, m, d)
}

// Pass is [Monitor.Pass].
func (r *Remote) Pass(ctx context.Context, m *Pass) (*Answer, error) {
	a := new(Answer)
	return a, r.ask(ctx, kindPass, m, a)
}

// Revoke is [Monitor.Revoke].
func (r *Remote) Revoke(ctx context.Context, m *Revoke) (*wire.Revoked, error) {
	a := new(wire.Revoked)
	return a, r.ask(ctx, kindRevoke, m, a)
}

// Measure is [Monitor.Measure].
func (r *Remote) Measure(ctx context.Context) (*Numbers, error) {
	n := new(Numbers)
	return n, r.ask(ctx, kindMeasure, nil, n)
}

// Attach is [Monitor.Attach].
func (r *Remote) Attach(ctx context.Context, m *Attach) (*Attached, error) {
	a := new(Attached)
	files, err := r.channel.call(ctx, kindAttach, m, a)
	if err != nil {
		return nil, err
	}
	if a.Carrier, err = carrierOf(files); err != nil {
		return nil, err
	}
	return a, nil
}

// Resume is [Monitor.Resume].
func (r *Remote) Resume(ctx context.Context, m *Resume) (*Resumed, error) {
	a := new(Resumed)
	files, err := r.channel.call(ctx, kindResume, m, a)
	if err == nil && (a.NoSession || a.Denied) {
		closeFiles(files)
		return a, nil
	}
	if err == nil {
		a.Carrier, err = carrierOf(files)
	}
	if err != nil && a.Login.ID != (LoginID{}) {
		r.Leave(a.Login.ID)
	}
	if err != nil {
		return nil, err
	}
	return a, nil
}

// A handedOver is a carrier of which the monitor has a descriptor, too: it ends when it is shut.
type handedOver struct{ *unixsock.Conn }

// Close implements [carrier.Carrier].
func (h handedOver) Close() error {
	stream := h.Sockets()[0]
	stream.CloseWrite()
	stream.CloseRead()
	return h.Conn.Close()
}

// carrierOf returns the carrier of the files of its stream and, if it has them, its datagrams.
func carrierOf(files []*os.File) (carrier.Carrier, error) {
	defer closeFiles(files)
	var sockets []*net.UnixConn
	for _, f := range files {
		c, err := net.FileConn(f)
		if err != nil {
			for _, s := range sockets {
				s.Close()
			}
			return nil, err
		}
		sockets = append(sockets, c.(*net.UnixConn))
	}
	var datagrams *net.UnixConn
	switch len(sockets) {
	case 0:
		return nil, errors.New("an answer without a carrier")
	case 2:
		datagrams = sockets[1]
	}
	c, err := unixsock.New(sockets[0], datagrams)
	return handedOver{c}, err
}

// A socketID names a socket that this process serves.
type socketID struct {
	ID      uint64  `cbor:"1,keyasint"`
	Purpose Purpose `cbor:"2,keyasint"`
}

// answer does what the monitor asks.
func (r *Remote) answer(ctx context.Context, k kind, payload []byte, files []*os.File) (any, []int, error) {
	defer closeFiles(files)
	r.mu.Lock()
	network := r.network
	r.mu.Unlock()
	if network == nil {
		return nil, nil, errors.New("the network half has not started")
	}
	switch k {
	case kindState:
		var state State
		if err := decode(payload, &state); err != nil {
			return nil, nil, err
		}
		network.Update(state)
		return nil, nil, nil
	case kindClients:
		clients, err := network.Clients(ctx)
		if err == nil {
			clients.Memory = memory.OfProcess()
		}
		return clients, nil, err
	case kindMetrics:
		text, err := network.Metrics(ctx)
		return text, nil, err
	case kindListen:
		var s socketID
		if err := errors.Join(decode(payload, &s), one(files)); err != nil {
			return nil, nil, err
		}
		return nil, nil, r.serve(network, s, files[0])
	case kindUnlisten:
		var s socketID
		err := decode(payload, &s)
		r.mu.Lock()
		if end := r.serving[s.ID]; end != nil {
			end()
		}
		r.mu.Unlock()
		return nil, nil, err
	case kindLocal:
		var client Local
		if err := errors.Join(decode(payload, &client), one(files)); err != nil {
			return nil, nil, err
		}
		c, err := net.FileConn(files[0])
		if err != nil {
			return nil, nil, err
		}
		r.work.Go(func() { network.ServeLocal(r.life, c, &client) })
		return nil, nil, nil
	}
	return nil, nil, fmt.Errorf("call %d is not known", k)
}

// one returns nil if there is one file.
func one(files []*os.File) error {
	if len(files) != 1 {
		return fmt.Errorf("%d descriptors instead of one", len(files))
	}
	return nil
}

// serve has a socket served, until the monitor says otherwise.
func (r *Remote) serve(network Network, s socketID, f *os.File) error {
	l := Listener{Purpose: s.Purpose}
	if s.Purpose == ForQUIC {
		c, err := net.FilePacketConn(f)
		if err != nil {
			return err
		}
		udp, ok := c.(*net.UDPConn)
		if !ok {
			c.Close()
			return errors.New("not a UDP socket")
		}
		l.Socket = udp
	} else {
		c, err := net.FileListener(f)
		if err != nil {
			return err
		}
		socket, ok := c.(socket)
		if !ok {
			c.Close()
			return errors.New("not a socket")
		}
		l.Socket = socket
	}
	ctx, cancel := context.WithCancel(r.life)
	r.mu.Lock()
	r.serving[s.ID] = cancel
	r.mu.Unlock()
	r.work.Go(func() {
		defer cancel()
		err := network.Serve(ctx, l)
		r.mu.Lock()
		delete(r.serving, s.ID)
		r.mu.Unlock()
		if err != nil {
			r.failed(fmt.Errorf("serve: %w", err))
		}
	})
	return nil
}
