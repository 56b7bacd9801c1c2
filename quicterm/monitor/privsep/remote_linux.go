package privsep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"

	"github.com/quicterm/quicterm/quicterm/machine/memory"
)

// A Remote is a monitor in another process, the one that has started this one.
type Remote struct {
	Calls
	channel *channel
	life    context.Context // of Run
	failed  func(error)     // ends Run

	mu      sync.Mutex
	serving map[uint64]context.CancelFunc // sockets
	work    sync.WaitGroup
}

// NewRemote returns the monitor at the other end of a socket, which it owns.
func NewRemote(socket *net.UnixConn) *Remote {
	r := &Remote{serving: make(map[uint64]context.CancelFunc)}
	r.channel = newChannel(socket, true, func(answer func() (any, error)) (any, []int, error) {
		a, err := answer()
		return a, nil, err
	})
	tableOf(&r.Calls).bind(r.ask)
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
	setup, err := r.Setup(ctx, new(None))
	if err != nil {
		return err
	}
	setup.Apart = true
	network, err := start(setup)
	if err != nil {
		return err
	}
	r.channel.serve(tableOf(r.calls(network)))
	if _, err := r.Ready(ctx, new(None)); err != nil {
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

// ask implements [asker].
func (r *Remote) ask(ctx context.Context, k kind, request, answer any) error {
	files, err := r.channel.call(ctx, k, request, answer)
	if taker, ok := answer.(fileTaker); ok && err == nil {
		err = taker.takeFiles(files)
	} else {
		closeFiles(files)
	}
	if a, ok := answer.(*Resumed); ok && err != nil && a.Login.ID != (LoginID{}) {
		r.Leave(ctx, &a.Login.ID)
	}
	return err
}

// calls returns what the monitor may ask of a network half.
func (r *Remote) calls(network Network) *networkCalls {
	return &networkCalls{
		State: Done(func(_ context.Context, state *State) error {
			network.Update(*state)
			return nil
		}),
		Clients: Told(func(ctx context.Context) (*Clients, error) {
			clients, err := network.Clients(ctx)
			if err == nil {
				clients.Memory = memory.OfProcess()
			}
			return clients, err
		}),
		Metrics: Told(func(ctx context.Context) (*[]byte, error) {
			text, err := network.Metrics(ctx)
			return &text, err
		}),
		Listen: Done(func(_ context.Context, s *listeningSocket) error {
			defer s.file.Close()
			return r.serve(network, s)
		}),
		Unlisten: Done(func(_ context.Context, id *uint64) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			if end := r.serving[*id]; end != nil {
				end()
			}
			return nil
		}),
		Local: Done(func(_ context.Context, l *handedClient) error {
			defer l.file.Close()
			c, err := net.FileConn(l.file)
			if err == nil {
				r.work.Go(func() { network.ServeLocal(r.life, c, &l.Client) })
			}
			return err
		}),
	}
}

// serve has a socket served, until the monitor says otherwise.
func (r *Remote) serve(network Network, s *listeningSocket) error {
	l := Listener{Purpose: s.Purpose}
	if s.Purpose == ForQUIC {
		c, err := net.FilePacketConn(s.file)
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
		c, err := net.FileListener(s.file)
		if err != nil {
			return err
		}
		socket, ok := c.(Socket)
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
