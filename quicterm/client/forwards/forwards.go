package forwards

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/forward"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A Config says what to forward.
type Config struct {
	Specs []Spec

	// Strict ends all when one forward fails at its start: ExitOnForwardFailure.
	Strict bool

	// Permit limits where connections go that a listener of the server takes by SOCKS: PermitRemoteOpen, or nil.
	Permit []string

	// Now opens the side pipe at once, also if only this machine listens.
	Now bool

	// Agent is where the ssh agent is that is offered to the sessions of this client: a path of [auth.DialAgent], or empty.
	// It is no failure if it cannot be offered: see [Forwards.AgentID].
	Agent string

	// Confirm asks the user for each signature of the agent: see [Forwards.ConfirmBy].
	Confirm bool

	// Say tells the user a line, until Tell gives another function for that.
	Say func(line string)
	Log *slog.Logger
}

// Forwards are those of a client. They are safe for concurrent use.
type Forwards struct {
	config Config
	client *client.Client
	life   context.Context
	stop   context.CancelFunc
	work   sync.WaitGroup
	gaveUp chan error // why there is no side pipe any more, once

	offer *offer        // that the server takes, or nil; Start alone sets it
	dials chan struct{} // places
	list  list

	mu      sync.Mutex // guards what follows, and is held while a pipe is opened
	pipe    *pipe
	keeping bool // keepOn runs

	telling sync.Mutex
	say     func(line string)
	ask     func(ctx context.Context, what string) bool // of ConfirmBy, or nil
}

// Start listens as the configuration says, and opens the side pipe if something needs it at once. An error says that
// nothing is forwarded. The caller calls Close.
func Start(ctx context.Context, c *client.Client, config Config) (*Forwards, error) {
	f := &Forwards{config: config, client: c, say: config.Say, gaveUp: make(chan error, 1), dials: make(chan struct{}, maxDials)}
	f.life, f.stop = context.WithCancel(context.WithoutCancel(ctx))
	for _, spec := range config.Specs {
		e := f.list.enter(spec)
		if spec.Kind == Remote {
			continue
		}
		err := f.listen(e)
		if err != nil {
			f.list.remove(e)
		}
		if err := f.failed(err); err != nil {
			f.Close()
			return nil, err
		}
	}
	if f.needed() {
		p, err := f.open(ctx)
		if err == nil {
			_, err = f.listenThere(ctx, p, f.failed)
		}
		if config.Strict || config.Now {
			if err != nil {
				f.Close()
				return nil, err
			}
		} else {
			f.failed(err)
		}
		f.keep(p)
	}
	if config.Agent != "" {
		if err := f.offerAgent(ctx); err != nil {
			f.tell(err.Error())
		}
	}
	return f, nil
}

// needed reports whether the side pipe is needed also while there is no connection.
func (f *Forwards) needed() bool { return f.config.Now || len(f.list.missing(nil)) > 0 }

// failed returns an error that ends all. Others it tells.
func (f *Forwards) failed(err error) error {
	if err == nil || f.config.Strict {
		return err
	}
	f.tell(err.Error())
	return nil
}

// Tell makes say tell the user what happens from here on.
func (f *Forwards) Tell(say func(line string)) {
	if f == nil {
		return
	}
	f.telling.Lock()
	defer f.telling.Unlock()
	f.say = say
}

func (f *Forwards) tell(line string) {
	f.telling.Lock()
	say := f.say
	f.telling.Unlock()
	say(wire.Printable(strings.ReplaceAll(line, "\n", "; "), maxLine))
}

// Close ends all connections and listeners, and the side pipe. Both Close and Tell do nothing without forwards.
func (f *Forwards) Close() {
	if f == nil {
		return
	}
	f.stop()
	f.list.close()
	f.mu.Lock()
	p := f.pipe
	f.mu.Unlock()
	if p != nil {
		p.leave()
	}
	f.work.Wait()
}

// listen takes the connections at the address of a forward on this machine. Loopback has two.
func (f *Forwards) listen(e *entry) error {
	network, address := e.Listen.network()
	addresses := []string{address}
	if port, local := strings.CutPrefix(address, "localhost:"); local {
		addresses = []string{"127.0.0.1:" + port, "[::1]:" + port}
	}
	if info, err := os.Lstat(address); network == "unix" && err == nil && info.Mode()&os.ModeSocket != 0 {
		c, err := net.Dial(network, address)
		if err == nil {
			c.Close()
		} else if errors.Is(err, syscall.ECONNREFUSED) {
			os.Remove(address) // of a client that was killed
		}
	}
	for i, address := range addresses {
		err := f.listenOn(e, network, address)
		if err != nil && i == 0 {
			return e.error(errors.New(forward.Reason(err)))
		}
		if err != nil { // a machine may have no IPv6
			f.config.Log.Debug("not listening", "address", address, "error", err)
		}
	}
	return nil
}

func (f *Forwards) listenOn(e *entry, network, address string) error {
	if network == "udp" {
		c, err := net.ListenPacket(network, address)
		if err != nil {
			return err
		}
		return f.serve(e, c, func() { f.receive(c.(*net.UDPConn), e) })
	}
	l, err := net.Listen(network, address)
	if err != nil {
		return err
	}
	if network == "unix" {
		os.Chmod(address, 0o600)
	}
	return f.serve(e, l, func() {
		forward.Accept(l, func(c forward.Conn) { f.work.Go(func() { f.carry(c, e) }) })
	})
}

// serve runs work, which ends when the listener is closed, and lets the forward own that. If the forward has ended, which
// a menu may outlive, it closes the listener.
func (f *Forwards) serve(e *entry, l io.Closer, work func()) error {
	f.list.mu.Lock()
	defer f.list.mu.Unlock()
	if f.list.closed || !slices.Contains(f.list.entries, e) {
		l.Close()
		return net.ErrClosed
	}
	e.listeners = append(e.listeners, l)
	f.work.Go(work)
	return nil
}

const (
	// maxLine bounds a line that the user is told, in bytes: whoever reaches a listener may have chosen some of it.
	maxLine = 1024

	// maxDials bounds the connections of this machine that are being made.
	maxDials = 256

	// firstPause and longestPause bound the time before a side pipe is opened again, or the server listens where it could
	// not, which doubles.
	firstPause   = time.Second
	longestPause = time.Minute
)

// pause waits, and reports whether the forwards continue.
func (f *Forwards) pause(d time.Duration) bool {
	select {
	case <-f.life.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// carry has the server connect to the target of a connection.
func (f *Forwards) carry(c forward.Conn, e *entry) {
	stop := context.AfterFunc(f.life, func() { forward.Abort(c) })
	defer stop()
	target, answer := e.Target, func(byte) {}
	if e.Kind == Dynamic {
		var err error
		if target, answer, err = readSOCKS(c); err != nil {
			f.config.Log.Debug("no connection by SOCKS", "error", err)
			forward.Abort(c)
			return
		}
	}
	stream, err := f.dial(target)
	if err == nil && e.Kind == Dynamic { // whoever asks by SOCKS waits for the answer
		err = read(stream, new(wire.Done))
		answer(socksReply(err))
	}
	if err != nil {
		f.fail(c, stream, e, target, err)
		return
	}
	e.join(stream, c, func() error { // what the connection sends does not wait for the answer
		if e.Kind == Dynamic {
			return nil
		}
		err := read(stream, new(wire.Done))
		if err != nil {
			f.fail(nil, stream, e, target, err)
		}
		return err
	})
}

// fail ends a connection that the server has not made, and says so.
func (f *Forwards) fail(c net.Conn, stream *forward.Stream, e *entry, target Address, err error) {
	if c != nil {
		forward.Abort(c)
	}
	if stream != nil {
		stream.Reset()
	}
	if f.life.Err() == nil && !errors.Is(err, errEnded) {
		f.tell(e.error(fmt.Errorf("%v: %w", target, err)).Error())
	}
}

// dial asks the server for a connection.
func (f *Forwards) dial(target Address) (*forward.Stream, error) {
	p, err := f.open(f.life)
	if err != nil {
		return nil, err
	}
	stream, err := p.session.Open(f.life)
	if err != nil {
		return nil, errEnded
	}
	if err := wire.Send(stream, &wire.Dial{Host: target.Host, Port: target.Port, Path: target.Path, UDP: target.UDP}); err != nil {
		stream.Reset()
		return nil, errEnded
	}
	return stream, nil
}

// connect connects to the target of a connection that the server has accepted.
func (f *Forwards) connect(stream *forward.Stream) {
	accepted := new(wire.Accepted)
	err := read(stream, accepted)
	e := f.list.remote(accepted.ID)
	if err != nil || e == nil {
		stream.Reset()
		return
	}
	if e.Kind == Agent {
		f.useAgent(stream, e)
		return
	}
	target, answer := e.Target, func(byte) {}
	bySOCKS := target == Address{}
	if bySOCKS {
		if target, answer, err = readSOCKS(stream); err != nil {
			stream.Reset()
			return
		}
		if !f.permits(target) {
			answer(socksRefused)
			f.fail(nil, nil, e, target, errors.New("PermitRemoteOpen does not permit it"))
			stream.Finish()
			return
		}
	}
	network, address := target.network()
	c, err := f.connectBy(func() (net.Conn, error) { return new(net.Dialer).DialContext(f.life, network, address) })
	answer(socksReply(err))
	if err != nil {
		f.fail(nil, nil, e, target, errors.New(forward.Reason(err)))
		if bySOCKS {
			stream.Finish()
		}
		stream.Reset()
		return
	}
	defer context.AfterFunc(f.life, func() { forward.Abort(c) })()
	e.join(stream, c.(forward.Conn), nil)
}
