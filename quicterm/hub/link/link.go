//go:build linux

// Package link is the process that connects a host to its hub, for the daemon. It is confined as the network process is:
// the host key, the accounts and the sessions are not in it, and it hands the streams that the hub relays to the daemon
// without looking at their bytes, which are TLS.
//
//	hub <---> link: TLS, NATS <---> network process: the clients' TLS
//	              \-> monitor: the signature of the login, and a pair of sockets for each stream
//
// It has one connection, which is made before it gives up its rights, and ends with it: the monitor starts it again.
package link

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/hub"
	"github.com/quicterm/quicterm/quicterm/hub/node"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
)

const (
	// dialTime bounds how long the hub's name and a connection to it take, and loginTime how long a login does.
	dialTime, loginTime = 20 * time.Second, 30 * time.Second

	// tellTime bounds how long the monitor takes to hear why this process ends.
	tellTime = 5 * time.Second
)

// Run connects a host to its hub and hands streams to the monitor, until the connection or ctx ends. It calls confine,
// which gives up all rights, when it has the connection, and before it reads a byte from that.
func Run(ctx context.Context, monitor *privsep.Linked, confine func() error, log *slog.Logger) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		monitor.Run(ctx)
		cancel() // without a monitor, there is nothing to do
	})
	defer monitor.Close()
	setup, err := monitor.Setup(ctx, new(privsep.None))
	if err != nil {
		return err
	}
	err = serve(ctx, monitor, setup, confine, log)
	if err != nil && ctx.Err() == nil {
		telling, done := context.WithTimeout(ctx, tellTime)
		defer done()
		monitor.Ended(telling, &privsep.LinkEnd{Text: err.Error()})
		return nil // it is told
	}
	return err
}

func serve(
	ctx context.Context, monitor *privsep.Linked, setup *privsep.LinkSetup, confine func() error, log *slog.Logger,
) error {
	address, err := hub.ParseAddress(setup.URL)
	if err != nil {
		return err
	}
	key, err := ssh.ParsePublicKey(setup.Key)
	if err != nil {
		return err
	}
	if !address.Pinned {
		if _, err := x509.SystemCertPool(); err != nil { // it is read once
			return fmt.Errorf("the system's certificates: %w", err)
		}
	}
	dialing, done := context.WithTimeout(ctx, dialTime)
	defer done()
	socket, err := new(net.Dialer).DialContext(dialing, "tcp", address.Join())
	if err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	defer socket.Close()
	if err := confine(); err != nil {
		return err
	}
	entering, done := context.WithTimeout(ctx, loginTime)
	defer done()
	conn, err := node.Dial(entering, setup.URL, node.Login{
		Key: key,
		Prove: func(ctx context.Context, at time.Time, nkey string) (*ssh.Signature, error) {
			p, err := monitor.Prove(ctx, &privsep.HubLogin{Time: at.Unix(), NKey: nkey})
			if err != nil {
				return nil, err
			}
			return &ssh.Signature{Format: p.Format, Blob: p.Blob}, nil
		},
		Dial: once(socket),
	}, log)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := monitor.Ready(ctx, new(privsep.None)); err != nil {
		return err
	}
	entry := hub.Entry{Name: setup.Name, Keys: setup.Keys, Version: setup.Version}
	var streams sync.WaitGroup
	defer streams.Wait()
	defer conn.Close() // which ends them
	ctx, end := context.WithCancel(ctx)
	defer end()
	err = conn.Serve(ctx, entry, func(stream net.Conn, caller hub.UserID) {
		streams.Go(func() {
			if err := relay(ctx, monitor, stream, caller); err != nil {
				log.Debug("a stream has ended", "caller", caller.String(), "error", err)
			}
		})
	})
	if err == nil && ctx.Err() == nil {
		err = errors.New("the hub has ended the connection")
	}
	return err
}

// once returns a function that returns one connection in place of a new one.
func once(c net.Conn) func(context.Context, string, string) (net.Conn, error) {
	var used sync.Mutex
	return func(context.Context, string, string) (net.Conn, error) {
		if !used.TryLock() {
			return nil, errors.New("this process has one connection to the hub")
		}
		return c, nil
	}
}

// relay connects a stream to the network half, until one of both or ctx ends. It closes the stream.
func relay(ctx context.Context, monitor *privsep.Linked, stream net.Conn, caller hub.UserID) error {
	defer stream.Close()
	to := privsep.Caller(caller)
	taken, err := monitor.Take(ctx, &to)
	if err != nil {
		return err
	}
	defer taken.Conn.Close()
	defer context.AfterFunc(ctx, func() { taken.Conn.Close(); stream.Close() })()
	return splice(stream, taken.Conn)
}

// splice copies bytes between two connections in both directions, with the end of each, until both have ended or one has
// failed. It closes both.
func splice(a, b net.Conn) error {
	errs := make(chan error, 2)
	pass := func(to, from net.Conn) {
		_, err := io.Copy(to, from)
		if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
			err = half.CloseWrite()
		} else if err == nil {
			err = io.EOF // it cannot be half closed
		}
		errs <- err
	}
	go pass(a, b)
	go pass(b, a)
	err := <-errs
	if err == nil {
		err = <-errs
	} else {
		a.Close()
		b.Close()
		<-errs
	}
	a.Close()
	b.Close()
	return err
}
