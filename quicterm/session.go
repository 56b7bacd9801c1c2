package quicterm

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/pump"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// inputBuffer is how many bytes of input wait for a server that is away,
	// before whoever writes it has to: a long paste.
	inputBuffer = 8 << 20

	// outputWindow is how many bytes of output wait for a terminal or a pipe
	// that is slow: what is on the way on a fast, long path.
	outputWindow = 4 << 20

	// maxWrite is how many bytes of output are written at once.
	maxWrite = 64 << 10

	// goodbye is how long the end of a session waits for the server to have
	// noticed that we know.
	goodbye = time.Second
)

// Streams are where a session's output goes, and who is told what happens to
// it. All functions but Changed are called by one goroutine at a time, and the
// session waits for them; they may be nil.
type Streams struct {
	// Stdout and Stderr take the program's output. An error of Stdout or
	// Stderr is passed on to the program as a closed pipe, and Run returns it
	// unless it is just that.
	Stdout, Stderr io.Writer
	// Replayed is called when all output that was there before we came has
	// been written: what follows is live.
	Replayed func()
	// Lost is told of output that will never come, whether it was skipped or
	// is not kept any more. Without a terminal the session ends after it.
	Lost func(session.Gap)
	// Changed is told of the link to the server, by one goroutine of its own.
	// What it misses while it is busy, it is not told.
	Changed func(Link)
	// InputClosed is called when the program does not read its input any more.
	InputClosed func()
}

// A Link describes the connection of a session to its server.
type Link struct {
	State    migrate.State
	Since    time.Time
	Attempts int // to reach the server since it was last heard
	// Backlog is how many bytes of output the server is yet to send, about, if
	// they are many.
	Backlog uint64
}

// Errors that end Session.Run.
var (
	// ErrGone means that the server does not have the session any more.
	ErrGone = errors.New("the session is gone")
	// ErrLeft means that Leave was called: the session lives on.
	ErrLeft = errors.New("left the session")
	// ErrLost means that output of a program without a terminal was lost.
	ErrLost = errors.New("output was lost")
)

// A DisplacedError ends a session's Run because another client took it over.
type DisplacedError struct{ By string }

func (e *DisplacedError) Error() string { return "the session was taken over by " + e.By }

// A Session is a client's end of a terminal session.
type Session struct {
	client   *Client
	log      *slog.Logger
	streams  Streams
	attached wire.Attached
	instance wire.InstanceID
	first    *carrier.QUIC // the carrier that the session began on

	mu      sync.Mutex
	changed *sync.Cond // of mu: output came, or the input has room, or the end
	ring    *buffer.Ring
	peer    *session.Peer
	pump    *pump.Pump
	resumes uint64    // numbers of proofs that were used
	refused time.Time // since when the server has not known the session, or zero
	active  time.Time // when there was traffic, if that was not reported
	link    Link
	queue   []session.Delivered
	over    bool
	cause   error  // why Run is to return, once over
	status  int    // of the program; for Run alone
	failed  error  // of the first output that could not be written; for Run alone
	merged  []byte // room for output that is written together; for Run alone

	poke     chan struct{}        // wakes the link's loop
	asked    chan chan linkStatus // what the link's loop is to answer
	unlinked chan struct{}        // closed when that has ended
}

// Attach connects to the server and attaches to a session. It fills in the
// request's Instance.
func (c *Client) Attach(ctx context.Context, req *wire.Attach, streams Streams) (*Session, error) {
	s := &Session{
		client:   c,
		log:      c.cfg.Log,
		streams:  streams,
		ring:     buffer.NewRing(inputBuffer),
		poke:     make(chan struct{}, 1),
		asked:    make(chan chan linkStatus),
		unlinked: make(chan struct{}),
	}
	s.changed = sync.NewCond(&s.mu)
	if _, err := rand.Read(s.instance[:]); err != nil {
		return nil, err
	}
	req.Instance = s.instance
	m, err := wire.New(req)
	if err != nil {
		return nil, fmt.Errorf("the command is too long: %w", err)
	}
	link, answer, err := c.login(ctx, m)
	if err != nil {
		return nil, err
	}
	if err := answer.Decode(&s.attached); err != nil {
		link.Close()
		return nil, err
	}
	if s.attached.First == 0 || len(s.attached.Secret) == 0 {
		link.Close()
		return nil, errors.New("the server's answer makes no sense")
	}
	s.peer = session.NewPeer(session.Config{
		Log:     s.ring,
		Acked:   1,
		Next:    s.attached.First,
		Offset:  s.attached.Offset,
		Reorder: c.cfg.Settings.ReorderWindow,
		Window:  outputWindow,
		Lazy:    true,
	})
	s.pump = pump.New(&s.mu, s.peer, s.receivedLocked)
	s.pump.Compress(compressions[c.cfg.Settings.Compression])
	s.first = link
	return s, nil
}

// compressions are the names that the settings have for what is compressed.
var compressions = map[string]pump.Compression{"off": pump.Off, "auto": pump.Auto, "on": pump.On}

// Name returns the session's name on the server.
func (s *Session) Name() string { return s.attached.Name }

// Created reports whether the session is new.
func (s *Session) Created() bool { return s.attached.Created }

// Run keeps the session going until it is over, and returns the exit status of
// the program: 128 and the signal's number if one killed it. The end of the
// context is as if Leave were called. When Run returns, no goroutine of the
// session is left; whoever waits in Write gets an error.
func (s *Session) Run(ctx context.Context) (int, error) {
	stop := context.AfterFunc(ctx, s.Leave)
	defer stop()
	linkCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { s.keepLink(linkCtx) })
	s.deliver()
	s.sayGoodbye()
	cancel()
	wg.Wait()
	if s.cause == nil && s.failed != nil {
		return s.status, fmt.Errorf("write the output: %w", s.failed)
	}
	return s.status, s.cause
}

// end has Run return. The first cause counts; nil is the program's end.
func (s *Session) end(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLocked(cause)
}

func (s *Session) endLocked(cause error) {
	if s.over {
		return
	}
	s.over, s.cause = true, cause
	s.changed.Broadcast()
}

// sayGoodbye waits until the server has hung up because it knows that we know
// how the program ended, or that we leave.
func (s *Session) sayGoodbye() {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := errors.Is(s.cause, ErrLeft)
	cutOff := s.link.State > migrate.Live
	if s.cause != nil && !left || cutOff {
		return
	}
	if left {
		s.waitLocked(func() bool { return s.peer.Acked() == s.ring.Next() })
		s.peer.Notify(session.Leaving, "")
		s.pump.Wake()
	}
	s.waitLocked(func() bool { return s.pump.Carriers() == 0 })
}

// waitLocked waits for something that the server does, but not for long.
func (s *Session) waitLocked(done func() bool) {
	until := time.Now().Add(goodbye)
	timer := time.AfterFunc(goodbye, func() {
		s.mu.Lock() // or it may come between a look at the time and the wait
		defer s.mu.Unlock()
		s.changed.Broadcast()
	})
	defer timer.Stop()
	for !done() && time.Now().Before(until) {
		s.changed.Wait()
	}
}

// receivedLocked is called when carriers have brought frames.
func (s *Session) receivedLocked() {
	frames := s.peer.Take()
	s.queue = session.Queue(s.queue, frames...)
	s.ring.Release(s.peer.Consumed())
	for _, n := range s.peer.TakeNotices() {
		if n.Code == session.Displaced {
			s.endLocked(&DisplacedError{By: n.Text})
		}
	}
	if len(frames) > 0 {
		s.active = time.Now()
	}
	s.refused = time.Time{}
	s.changed.Broadcast()
	wake(s.poke)
}

// deliver writes the output until the session is over.
func (s *Session) deliver() {
	if s.attached.Live <= s.attached.First {
		s.replayed()
	}
	for {
		s.mu.Lock()
		for !s.over && len(s.queue) == 0 {
			s.changed.Wait()
		}
		if s.over {
			s.mu.Unlock()
			return
		}
		batch := s.queue
		s.queue = nil
		s.mu.Unlock()
		for len(batch) > 0 {
			n := s.write(batch)
			last := batch[n-1]
			s.mu.Lock()
			s.peer.Consume(time.Now(), batch[:n]...)
			s.pump.Wake()
			if last.Lost == nil && last.Type == session.Exit {
				s.endLocked(nil)
			}
			s.mu.Unlock()
			if s.attached.Live > 0 && last.After() >= s.attached.Live {
				s.replayed()
			}
			batch = batch[n:]
		}
	}
}

// replayed notes, once, that all that follows is live.
func (s *Session) replayed() {
	s.attached.Live = 0
	if s.streams.Replayed != nil {
		s.streams.Replayed()
	}
}

// write deals with the first frames of a batch, together where they are output
// of the same kind, and returns how many.
func (s *Session) write(batch []session.Delivered) int {
	d := batch[0]
	switch {
	case d.Lost != nil:
		s.attached.Skip = 0
		if s.streams.Lost != nil {
			s.streams.Lost(*d.Lost)
		}
		if !s.attached.PTY {
			s.end(ErrLost)
		}
		return 1
	case d.Type == session.Stdout || d.Type == session.Stderr:
		return s.writeOutput(batch)
	case d.Type == session.EOF:
		s.closeOutput(d.Payload)
	case d.Type == session.Closed:
		if s.streams.InputClosed != nil {
			s.streams.InputClosed()
		}
	case d.Type == session.Exit:
		s.status = 255
		if len(d.Payload) > 0 {
			s.status = int(d.Payload[0])
		}
	}
	return 1
}

// writeOutput writes the first frames of a batch that go the same way.
func (s *Session) writeOutput(batch []session.Delivered) int {
	t := batch[0].Type
	b := s.skip(batch[0].Payload)
	n := 1
	for n < len(batch) && batch[n].Lost == nil && batch[n].Type == t &&
		batch[n].Seq != s.attached.Live && len(b)+len(batch[n].Payload) <= maxWrite {
		if n == 1 {
			s.merged = append(s.merged[:0], b...)
		}
		s.merged = append(s.merged, s.skip(batch[n].Payload)...)
		b = s.merged
		n++
	}
	w, stream := s.streams.Stdout, session.StreamStdout
	if t == session.Stderr {
		w, stream = s.streams.Stderr, session.StreamStderr
	}
	if len(b) == 0 || w == nil {
		return n
	}
	if _, err := w.Write(b); err != nil {
		s.noteFailure(err)
		s.dropOutput(stream)
		s.mu.Lock()
		s.peer.Notify(session.ReaderGone, string([]byte{byte(stream)}))
		s.pump.Wake()
		s.mu.Unlock()
	}
	return n
}

// skip leaves out the bytes that the server said to.
func (s *Session) skip(b []byte) []byte {
	n := min(uint64(len(b)), s.attached.Skip)
	s.attached.Skip -= n
	return b[n:]
}

func (s *Session) dropOutput(stream session.Stream) {
	if stream == session.StreamStderr {
		s.streams.Stderr = nil
	} else {
		s.streams.Stdout = nil
	}
}

// closeOutput passes on that the program has closed one of its streams.
func (s *Session) closeOutput(payload []byte) {
	stream, err := session.ParseStream(payload)
	if err != nil || stream == session.StreamStdin {
		return
	}
	w := s.streams.Stdout
	if stream == session.StreamStderr {
		w = s.streams.Stderr
	}
	if c, ok := w.(io.Closer); ok {
		s.noteFailure(c.Close())
	}
	s.dropOutput(stream)
}

// noteFailure remembers the first error of writing output. A reader that has
// gone away is none.
func (s *Session) noteFailure(err error) {
	if err == nil || s.failed != nil || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
		return
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err // the path is a made up one
	}
	s.failed = err
}

// errOver is the error of writing to a session that is over.
var errOver = fmt.Errorf("write to a session that is over: %w", io.ErrClosedPipe)

// Write sends input to the program. It blocks while as much waits for the server
// as is kept, and returns an error when the session is over.
func (s *Session) Write(b []byte) (int, error) {
	written := 0
	for {
		n := min(len(b)-written, maxInput)
		if err := s.send(session.Stdin, b[written:written+n]); err != nil {
			return written, err
		}
		if written += n; written == len(b) {
			return written, nil
		}
	}
}

// maxInput is how many bytes of input go into a frame.
const maxInput = 16 << 10

// CloseWrite ends the input.
func (s *Session) CloseWrite() error {
	return s.send(session.EOF, []byte{byte(session.StreamStdin)})
}

// Resize tells the program's terminal that ours has another size.
func (s *Session) Resize(size session.Size) error {
	return s.send(session.Resize, size.Append(nil))
}

// Signal sends a signal to the program, given by its name without SIG. HUP ends
// the session.
func (s *Session) Signal(name string) error { return s.send(session.Signal, []byte(name)) }

// Skip has the server leave out what it has not sent of the output until then, but
// for the last lines, once the program was given the input before. Without a
// terminal it does nothing.
func (s *Session) Skip() error { return s.send(session.Skip, nil) }

// Leave has Run return with ErrLeft. The session lives on.
func (s *Session) Leave() { s.end(ErrLeft) }

func (s *Session) send(t buffer.Type, payload []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.over && s.ring.Room() < max(len(payload), 1) {
		s.changed.Wait()
	}
	if s.over {
		return errOver
	}
	now := time.Now()
	s.ring.Append(t, payload)
	s.active = now
	s.peer.Appended(now)
	s.pump.Wake()
	wake(s.poke)
	return nil
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
