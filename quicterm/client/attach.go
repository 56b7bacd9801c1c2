package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/session/driver"
	"github.com/quicterm/quicterm/quicterm/session/gate"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// inputBuffer is how many bytes of input may wait for the server before Write blocks: a
	// long paste.
	inputBuffer = 8 << 20

	// outputWindow is how many bytes of output may wait to be written: what is under way on a
	// fast, long path.
	outputWindow = 4 << 20
)

// Streams are where the output of a session goes, and the functions that are called when
// something happens to it. All but the last four are called by one goroutine, for which the session
// waits. All may be nil.
type Streams struct {
	// Stdout and Stderr take the program's output. If one of them returns an error, the
	// program sees a closed pipe, and Run returns the error unless the reader was closed.
	Stdout, Stderr io.Writer
	// Replaying is called when what follows is old again: output of an outage.
	Replaying func()
	// Replayed is called when all old output, such as that from before the attach, is written:
	// what follows is live.
	Replayed func()
	// Lost is called with output that will never come, because it was skipped or is no longer
	// kept. If it has a Snapshot, that is what a terminal of the session's size that was just
	// reset needs in its place. A session without a terminal ends after it.
	Lost func(Gap)
	// Began is called first, with such a snapshot in place of the output from before the attach, and when the
	// session's terminal has another size, unless this client's terminal gives it.
	Began func(snapshot []byte)
	// Resized is called with the size that the session's terminal has for what follows, output or
	// a snapshot, and with its owner. It may be the same as before.
	Resized func(wire.Sizing)
	// Changed is called with the state of the link, by a goroutine of its own. States that
	// come while it runs are left out, except the last.
	Changed func(LinkState)
	// Joined and Left are called by that goroutine too, when another client begins and ends to
	// share or watch a session in which this one writes. Joined is also called for those that are
	// there at the attach.
	Joined, Left func(wire.Presence)
	// Ending is called by it when an operator ends the session, with who does that and why.
	Ending func(by string)
	// Ended is called by it when this client comes back, with the command that has ended last meanwhile, as the session's
	// shell tells.
	Ended func(wire.Ended)
	// Ports is called by it with the ports at which processes of the session listen, if this client may forward them.
	Ports func([]uint16)
	// Hinted is called with what the server knows of the terminal, as soon as the output up to its
	// Out is written, and before any later output. Of several that are due it gets the newest.
	// Without the function, the client asks for none.
	Hinted func(wire.Hint)
	// Happened is called with the events of a client whose Attach has Events, and their numbers, which have no gaps except
	// those that Lost is called with.
	Happened func(number uint64, e wire.Event)
	// Entered is called with what has come of an Entry of this client (see [Session.Enter]), before the output of that.
	Entered func(wire.Entered)
	// Typist is called when another client has typed for the first time since the last Entry.
	Typist func(wire.Typist)
	// Appeared is called when another session was started that such a client may see. It must not block.
	Appeared func()
	// Waits is called when the program waits for input, if the Attach has Notify. It must not block.
	Waits func()
	// Offered is called when a file is offered to this client. It must not block.
	Offered func(wire.OfferFile)
	// InputClosed is called when the program no longer reads its input.
	InputClosed func()
}

// A Session is the client's end of a terminal session.
type Session struct {
	client   *Client
	log      *slog.Logger
	streams  Streams
	attached wire.Attached
	instance wire.InstanceID
	first    *loggedIn // the carrier that the session began on

	// For Run's goroutine alone, once it runs:
	begins   bool            // the output may begin with a snapshot that stands for no loss
	sizing   wire.Sizing     // of the output, zero before that has told
	offset   uint64          // in the log of the output, behind what was written last
	exit     wire.ExitStatus // of the program
	writeErr error           // the first error of writing output
	merged   []byte          // frames of output that are written together
	hintAt   uint64          // the frame of output behind which a hint is due, or 0

	gate     gate.Gate // guards what follows
	waiting  int       // goroutines in waitLocked
	askedAt  time.Time // when AskHint has asked last
	ring     *buffer.Ring
	endpoint *session.Endpoint
	driver   *driver.Driver
	proofs   uint64 // how many proofs were made for resumes
	link     LinkState
	bulk     bool // much is sent, as the roamer was told
	carried  bool // a carrier has begun
	over     bool
	cause    error // why Run returns, once over
	alarm    alarm
	hints    hints

	deniedSince   time.Time // since when the server denies that it has the session, or zero
	saidGoneSince time.Time // since when it also says that the session is gone, or zero

	others   map[uint64]bool // numbers of the clients that have joined
	arrivals []arrival       // to be announced
	ending   string          // who ends the session, and why; to be announced
	ended    string          // the text of the last notice of a command that has ended; to be announced
	ports    string          // that of the last notice of ports; to be announced

	linkChanged    chan struct{}          // wakes the goroutine that announces
	statusRequests chan chan roamerStatus // that the roamer answers
	roamerDone     chan struct{}          // closed when the roamer has ended
}

// Attach connects to the server and attaches to a session. The caller calls Run, which closes
// the connection.
//
// The request says which role the client gets, and what of the output from before.
// Its Input is a [wire.Entry] in the first frame of input, for which no round trip is waited.
// Attach fills in its Instance if it has none. After a [BrokenOffError] the session
// may have been made, or taken over. Another Attach with the same request gets that session,
// and no other.
func (c *Client) Attach(ctx context.Context, req *wire.Attach, streams Streams) (*Session, error) {
	s := &Session{
		client:         c,
		log:            c.cfg.Log,
		streams:        streams,
		ring:           buffer.NewRing(inputBuffer),
		alarm:          alarm{roamer: make(chan struct{}, 1)},
		others:         make(map[uint64]bool),
		linkChanged:    make(chan struct{}, 1),
		statusRequests: make(chan chan roamerStatus),
		roamerDone:     make(chan struct{}),
	}
	if req.Instance == (wire.InstanceID{}) {
		if _, err := rand.Read(req.Instance[:]); err != nil {
			return nil, err
		}
	}
	s.instance = req.Instance
	compress := compression(c.cfg.Compression)
	req.Compression = uint8(compress)
	req.Hints = max(req.Hints, wire.HintsPredict)
	if streams.Hinted == nil {
		req.Hints = 0
	}
	req.Machine = c.cfg.Machine
	if len(req.Input) > 0 {
		s.ring.Append(wire.EntryFrame, req.Input) // sent again, because an older server ignores that of the request
	}
	m, err := wire.New(req)
	if err != nil {
		return nil, fmt.Errorf("the command is too long: %w", err)
	}
	first, err := c.login(ctx, m)
	var refusal *wire.Error
	if errors.As(err, &refusal) {
		return nil, refusedBy(refusal)
	}
	if err != nil {
		return nil, err
	}
	if err := first.answer.Decode(&s.attached); err != nil {
		first.Close()
		return nil, err
	}
	if req.Events && !s.attached.Events {
		first.Close()
		return nil, errors.New("the session's server is too old to tell its events: they need the one of this version")
	}
	if req.Side != s.attached.Side {
		first.Close()
		return nil, fmt.Errorf("the server is too old for side pipes of this kind, %q", req.Side)
	}
	if s.attached.First == 0 || len(s.attached.Secret) == 0 || !wire.ValidName(s.attached.Name) ||
		s.attached.Role != req.Role {
		first.Close()
		return nil, errors.New("the server's answer makes no sense")
	}
	s.offset = s.attached.Offset
	s.begins = req.Replay.Kind == wire.ReplayScreen && !s.attached.Created && s.attached.First == 1
	cfg := session.Config{
		Log:           s.ring,
		Acked:         1,
		Next:          s.attached.First,
		Offset:        s.attached.Offset,
		Window:        outputWindow,
		DelayAcks:     true,
		TakeSnapshots: s.attached.PTY && !s.attached.Events,
	}
	if req.Hints != 0 {
		cfg.TakeNote = func(received uint64, note []byte) {
			s.hints.take(received, note)
			s.endpoint.Secret(s.hints.secret)
		}
		s.hints.written = s.attached.First - 1
	}
	s.endpoint = session.NewEndpoint(cfg)
	s.driver = driver.New(&s.gate, s.endpoint, s.receivedLocked)
	s.driver.Compress(compress)
	s.first = first
	return s, nil
}

// compression returns what a setting means.
func compression(setting string) driver.Compression {
	switch setting {
	case "off":
		return driver.Off
	case "on":
		return driver.On
	}
	return driver.Auto
}

// First returns the number of the first frame that the session gets, of its output or, with Events, of those.
func (s *Session) First() uint64 { return s.attached.First }

// Name returns the session's name on the server, which may change.
func (s *Session) Name() string {
	s.gate.Lock()
	defer s.gate.Unlock()
	return s.attached.Name
}

// ID returns the session's id on the server.
func (s *Session) ID() wire.SessionID { return s.attached.ID }

// Unseen returns about how many lines of output no client has seen that the screen at the attach
// leaves out.
func (s *Session) Unseen() uint64 { return s.attached.Unseen }

// Created reports whether the session is new.
func (s *Session) Created() bool { return s.attached.Created }

// Sizing returns the size of the session's terminal at the attach and its owner, not by name.
func (s *Session) Sizing() wire.Sizing {
	return wire.Sizing{Size: s.attached.Size, Owner: s.attached.Owner}
}

// Typists returns the clients that have typed since the last Entry, if the request has asked for the hints of a program.
func (s *Session) Typists() []wire.Typist { return s.attached.Typists }

// Activity returns what the session did at the attach, if this client peeks and that is known, or nil.
func (s *Session) Activity() *wire.Activity { return s.attached.Activity }

// Again returns what has come of an Entry that was typed before, if that in the request has the same ID. The output begins
// with what was printed since.
func (s *Session) Again() (e wire.Entered, ok bool) {
	e, err := wire.ParseEntered(s.attached.Again)
	return e, err == nil
}

// Number returns the number of this client in the session, by which a [wire.Sizing] names the owner.
func (s *Session) Number() uint64 { return s.attached.Number }

// Run keeps the session connected and writes its output until it is over. It returns the
// exit status of the program: 128 and the signal's number if a signal killed it. The end of
// the context is as if Leave were called. When Run returns, no goroutine of the session is
// left, and calls of Write that block return an error.
func (s *Session) Run(ctx context.Context) (int, error) {
	stop := context.AfterFunc(ctx, s.Leave)
	defer stop()
	roamCtx, stopRoaming := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(s.roamerDone)
		newRoamer(s).run(roamCtx)
	}()
	s.deliver()
	if s.cause == errParted && s.part() {
		go func() {
			s.sayGoodbye()
			stopRoaming()
		}()
		return 0, ErrLeft
	}
	s.sayGoodbye()
	stopRoaming()
	<-s.roamerDone
	if s.cause == errParted {
		return 0, ErrLeft
	}
	if s.cause == nil && s.writeErr != nil {
		return int(s.exit.Status), fmt.Errorf("write the output: %w", s.writeErr)
	}
	return int(s.exit.Status), s.cause
}

// Exit returns how the program ended. It is valid when Run has returned without an error.
func (s *Session) Exit() wire.ExitStatus { return s.exit }

// receivedLocked is called when a carrier has brought frames.
func (s *Session) receivedLocked() {
	s.ring.Release(s.endpoint.Consumed())
	s.endIfDamagedLocked()
	for _, n := range s.endpoint.TakeNotices() {
		switch n.Code {
		case wire.NoticeDisplaced:
			s.endLocked(&DisplacedError{By: wire.Printable(n.Text, wire.MaxClient)})
		case wire.NoticeJoined, wire.NoticeLeft:
			s.arrivedLocked(n.Text, n.Code == wire.NoticeJoined)
		case wire.NoticeEnding:
			s.endingLocked(n.Text)
		case wire.NoticeEnded:
			if s.ended != n.Text { // the same one may come more than once
				s.ended = n.Text
				wake(s.linkChanged)
			}
		case wire.NoticePorts:
			if s.ports != n.Text {
				s.ports = n.Text
				wake(s.linkChanged)
			}
		case wire.NoticeAppeared:
			if s.streams.Appeared != nil {
				s.streams.Appeared()
			}
		case wire.NoticeWaits:
			if s.streams.Waits != nil {
				s.streams.Waits()
			}
		case wire.NoticeFile:
			if o, err := wire.ParseOfferFile(n.Text); err == nil && s.streams.Offered != nil {
				s.streams.Offered(o)
			}
		case wire.NoticeRenamed:
			if wire.ValidName(n.Text) {
				s.attached.Name = n.Text
			}
		}
	}
	s.deniedSince, s.saidGoneSince = time.Time{}, time.Time{}
	if s.endpoint.Pending() > 0 || s.hints.due() || s.waiting > 0 {
		s.gate.Changed()
	}
	if limited := s.limitedLocked(time.Now()); limited != s.bulk {
		s.bulk = limited
		wake(s.alarm.roamer)
	}
	if backlog := s.endpoint.PeerBacklog(); backlog != s.link.Backlog {
		s.link.Backlog = backlog
		wake(s.linkChanged)
	}
	s.alarm.frames(time.Now(), s.unackedLocked(), len(s.endpoint.Arrived()) > 0)
}

// unackedLocked returns since when input waits for an ack. It returns zero if none does, or
// if the program does not read its input and so no ack can come.
func (s *Session) unackedLocked() time.Time {
	if s.endpoint.PeerIsFull() {
		return time.Time{}
	}
	return s.endpoint.UnackedSince()
}

// limitedLocked reports whether the sender of much data, at either end, could use more carriers.
func (s *Session) limitedLocked(now time.Time) bool {
	return s.endpoint.Limited(now) || s.endpoint.PeerLimited(now)
}

// waitLocked waits for something other than output that frames, or the end of the session, bring about.
func (s *Session) waitLocked(ctx context.Context, done func() bool) error {
	s.waiting++
	defer func() { s.waiting-- }()
	return s.gate.Wait(ctx, done)
}
