package forwards

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/forward"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A pipe is a side pipe that is open.
type pipe struct {
	attached *client.Session
	session  *forward.Session
	done     chan struct{} // closed when err is known
	err      error
}

// errEnded is the error of a connection whose side pipe has ended.
var errEnded = errors.New("the connection to the server has ended")

// open returns the side pipe, which it opens if there is none.
func (f *Forwards) open(ctx context.Context) (*pipe, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.pipe; p != nil {
		select {
		case <-p.done:
		default:
			return p, nil
		}
	}
	out, in := io.Pipe()
	req := &wire.Attach{Side: wire.SideForward}
	attach := func() (*client.Session, error) { return f.client.Attach(ctx, req, client.Streams{Stdout: in}) }
	attached, err := attach()
	for start := time.Now(); errors.As(err, new(*client.BrokenOffError)) && time.Since(start) < longestPause; {
		if !f.pause(firstPause) {
			return nil, errEnded
		}
		attached, err = attach()
	}
	if err != nil {
		return nil, err
	}
	p := &pipe{attached: attached, done: make(chan struct{})}
	f.work.Go(func() {
		_, err := attached.Run(context.Background())
		p.err = err
		if err == nil {
			p.err = errEnded
		}
		close(p.done)
		out.CloseWithError(errEnded)
		in.Close()
	})
	if p.session, err = forward.NewSession(out, input{attached}, true); err != nil {
		attached.Part()
		return nil, err
	}
	f.pipe = p
	f.work.Go(func() {
		for {
			stream, err := p.session.Accept()
			if err != nil {
				return
			}
			f.work.Go(func() { f.connect(stream) })
		}
	})
	return p, nil
}

// leave ends a side pipe, and what it forwards.
func (p *pipe) leave() {
	p.attached.Part()
	<-p.done
	p.session.Close()
}

// An input is that of a side pipe's program.
type input struct{ *client.Session }

// Close implements [io.Closer].
func (i input) Close() error {
	i.Part()
	return nil
}

// keep opens the side pipe again when it has ended, for as long as something needs it: an hour without its client ends
// one. It also has the server listen for the forwards that are missing: what was in the way may end, for instance
// another client of the same user. It returns at once.
func (f *Forwards) keep(p *pipe) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.keeping {
		f.keeping = true
		f.work.Go(func() { f.keepOn(p) })
	}
}

// keeps reports whether to continue with that.
func (f *Forwards) keeps() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.keeping = f.needed()
	return f.keeping
}

func (f *Forwards) keepOn(p *pipe) {
	pause := firstPause
	for {
		var ended <-chan struct{} // never
		var again <-chan time.Time
		if p != nil {
			ended = p.done
		}
		if p == nil || len(f.list.missing(p)) > 0 {
			again = time.After(pause)
		}
		select {
		case <-f.life.Done():
			return
		case <-ended:
			if !f.pause(pause) {
				return
			}
		case <-again:
		}
		if !f.keeps() {
			return
		}
		pause = min(2*pause, longestPause)
		next, err := f.open(f.life)
		tell := f.quiet
		switch {
		case refused(err):
			if f.gaveUp <- err; !f.config.Now { // or Wait returns it
				f.tell(err.Error())
			}
			return
		case err != nil:
			f.config.Log.Debug("no side pipe", "error", err)
			continue
		case next != p:
			p, tell = next, f.told
		}
		if n, _ := f.listenThere(f.life, p, tell); n > 0 {
			pause = firstPause
		}
	}
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

// listenAt makes the server listen for a forward, unless it does, and returns what there is to say about that.
func (f *Forwards) listenAt(ctx context.Context, p *pipe, e *entry) (note string, err error) {
	e.asking.Lock()
	defer e.asking.Unlock()
	if !slices.Contains(f.list.missing(p), e) {
		return "", nil
	}
	at := e.Listen
	stream, err := p.session.Open(ctx)
	if err != nil {
		return "", e.error(errEnded)
	}
	defer context.AfterFunc(ctx, stream.Reset)()
	answer := new(wire.Listening)
	if e.Kind == Agent {
		if err = wire.Send(stream, &wire.OfferAgent{ID: e.id, Agent: e.offer.id[:]}); err == nil {
			err = read(stream, new(wire.Done))
		}
	} else if err = wire.Send(stream, &wire.Listen{Host: at.Host, Port: at.Port, Path: at.Path, ID: e.id}); err == nil {
		err = read(stream, answer)
	}
	if err != nil || !f.list.listening(e, p, stream) {
		stream.Reset()
		return "", e.error(err)
	}
	switch {
	case e.Kind == Agent:
	case at.Port == 0 && at.Path == "":
		note = fmt.Sprintf("-R %v: the server listens at port %d", at, answer.Port)
	case answer.Loopback && !slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, at.Host):
		note = fmt.Sprintf("-R %v: only the server itself reaches it: see GatewayPorts of its sshd_config", at)
	}
	return note, nil
}

// told and quiet take an error that does not end the forwards: the user is told of it, or was told of it before.
func (f *Forwards) told(err error) error {
	f.tell(err.Error())
	return nil
}

func (f *Forwards) quiet(err error) error {
	f.config.Log.Debug("the server does not listen", "error", err)
	return nil
}

// refused reports whether an error says that the server lets this client forward nothing, now and later.
func refused(err error) bool {
	return errors.As(err, new(*wire.Error)) || errors.As(err, new(*client.DeniedError)) ||
		errors.As(err, new(*client.WithdrawnError)) || errors.Is(err, client.ErrNoKeys)
}

// Wait waits until the server lets this client forward no more, or the context ends, and returns why.
func (f *Forwards) Wait(ctx context.Context) error {
	select {
	case err := <-f.gaveUp:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// read reads the message in front of a stream.
func read(stream *forward.Stream, v wire.Body) error {
	m, err := wire.Read(stream, wire.MaxAnswer)
	if err != nil {
		return errEnded
	}
	refusal := new(wire.Error)
	if m.Decode(refusal) == nil {
		return refusal
	}
	return m.Decode(v)
}
