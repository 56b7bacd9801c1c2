package forwards

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/quicterm/quicterm/quicterm/forward/permit"
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

	keeping sync.Once
	dials   chan struct{} // places
	list    list

	mu   sync.Mutex // guards pipe, and is held while one is opened
	pipe *pipe

	telling sync.Mutex
	say     func(line string)
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
	if port, local := strings.CutPrefix(address, "localhost:"); local && network == "tcp" {
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
		l, err := net.Listen(network, address)
		if err != nil && i == 0 {
			return e.error(errors.New(forward.Reason(err)))
		}
		if err != nil { // a machine may have no IPv6
			f.config.Log.Debug("not listening", "address", address, "error", err)
			continue
		}
		if network == "unix" {
			os.Chmod(address, 0o600)
		}
		e.listeners = append(e.listeners, l)
		f.work.Go(func() { f.accept(l, e) })
	}
	return nil
}

func (f *Forwards) accept(l net.Listener, e *entry) {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			f.pause(acceptPause)
			continue
		}
		f.work.Go(func() { f.carry(c.(forward.Conn), e) })
	}
}

const (
	// maxLine bounds a line that the user is told, in bytes: whoever reaches a listener may have chosen some of it.
	maxLine = 1024

	// maxDials bounds the connections of this machine that are being made.
	maxDials = 256

	// acceptPause is the time before a listener accepts again after an error, for instance for want of descriptors.
	acceptPause = 100 * time.Millisecond

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
	target := e.Target
	if e.Kind == Dynamic {
		var err error
		if target, err = readSOCKS(c); err != nil {
			f.config.Log.Debug("no connection by SOCKS", "error", err)
			forward.Abort(c)
			return
		}
	}
	stream, err := f.dial(target)
	if err == nil && e.Kind == Dynamic { // whoever asks by SOCKS waits for the answer
		err = read(stream, new(wire.Done))
		replySOCKS(c, socksReply(err))
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
	if err := wire.Send(stream, &wire.Dial{Host: target.Host, Port: target.Port, Path: target.Path}); err != nil {
		stream.Reset()
		return nil, errEnded
	}
	return stream, nil
}

// listenThere has the server listen for the forwards for which it does not, and returns for how many it does now. It
// stops at an error of failed.
func (f *Forwards) listenThere(ctx context.Context, p *pipe, failed func(error) error) (listening int, err error) {
	for _, e := range f.list.missing(p) {
		note, err := f.listenAt(ctx, p, e)
		if err == nil {
			listening++
		} else if err := failed(err); err != nil {
			return listening, err
		}
		if note != "" {
			f.tell(note)
		}
	}
	return listening, nil
}

// listenAt has the server listen for a forward, and returns what there is to say about that.
func (f *Forwards) listenAt(ctx context.Context, p *pipe, e *entry) (note string, err error) {
	at := e.Listen
	stream, err := p.session.Open(ctx)
	if err != nil {
		return "", e.error(errEnded)
	}
	defer context.AfterFunc(ctx, stream.Reset)()
	err = wire.Send(stream, &wire.Listen{Host: at.Host, Port: at.Port, Path: at.Path, ID: e.id})
	answer := new(wire.Listening)
	if err == nil {
		err = read(stream, answer)
	}
	if err != nil || !f.list.listening(e, p, stream) {
		stream.Reset()
		return "", e.error(err)
	}
	switch {
	case at.Port == 0 && at.Path == "":
		note = fmt.Sprintf("-R %v: the server listens at port %d", at, answer.Port)
	case answer.Loopback && !slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, at.Host):
		note = fmt.Sprintf("-R %v: only the server itself reaches it: see GatewayPorts of its sshd_config", at)
	}
	return note, nil
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
	target := e.Target
	bySOCKS := target == Address{}
	if bySOCKS {
		if target, err = readSOCKS(stream); err != nil {
			stream.Reset()
			return
		}
		if !f.permits(target) {
			replySOCKS(stream, socksRefused)
			f.fail(nil, nil, e, target, errors.New("PermitRemoteOpen does not permit it"))
			stream.Finish()
			return
		}
	}
	network, address := target.network()
	c, err := f.connectTo(network, address)
	if bySOCKS {
		replySOCKS(stream, socksReply(err))
	}
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

// connectTo connects to an address, unless too many others do not answer: each that the server has accepted may be one.
func (f *Forwards) connectTo(network, address string) (net.Conn, error) {
	select {
	case f.dials <- struct{}{}:
		defer func() { <-f.dials }()
	default:
		return nil, fmt.Errorf("%d others do not answer", maxDials)
	}
	return new(net.Dialer).DialContext(f.life, network, address)
}

func socksReply(err error) byte {
	if err != nil {
		return socksFailed
	}
	return socksDone
}

// permits reports whether PermitRemoteOpen lets a connection by SOCKS go to a target of this machine.
func (f *Forwards) permits(target Address) bool {
	rules := permit.Rules{}
	if f.config.Permit != nil {
		rules.Dials = []permit.List{f.config.Permit}
	}
	return rules.Dial(target.Host, target.Port) == nil
}
