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
	work    sync.WaitGroup
}

// NewRemote returns the monitor at the other end of a socket, which it owns.
func NewRemote(socket *net.UnixConn) *Remote {
	r := new(Remote)
	r.channel = newChannel(socket, true, func(answer func() (any, error)) (any, []int, error) {
		a, err := answer()
		return a, nil, err
	})
	tableOf(&r.Calls).bind(r.ask)
	return r
}

// Inherited returns the monitor that has started this process.
func Inherited() (*Remote, error) {
	socket, err := socketOf(os.NewFile(ChannelFD, "monitor"))
	if err != nil {
		return nil, fmt.Errorf("the daemon of root starts this command: %w", err)
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
		Listen: Done(func(_ context.Context, s *listeningSocket) error { return r.serve(network, s) }),
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

// serve has a socket served for the life of this process.
func (r *Remote) serve(network Network, s *listeningSocket) (err error) {
	defer s.file.Close()
	var socket any
	if s.Purpose == ForQUIC {
		socket, err = net.FilePacketConn(s.file)
	} else {
		socket, err = net.FileListener(s.file)
	}
	if err != nil {
		return err
	}
	l := Listener{Purpose: s.Purpose, Socket: socket.(Socket)} // net has no others
	r.work.Go(func() {
		if err := network.Serve(r.life, l); err != nil {
			r.failed(fmt.Errorf("serve: %w", err))
		}
	})
	return nil
}
