package client

import (
	"errors"
	"net/netip"
	"time"

	"github.com/quicterm/quicterm/migrate"
)

// A State says how the link of a session is. From Live on, each is worse than the one before.
type State int

const (
	Connecting = State(migrate.Connecting) // there has been no connection yet
	Live       = State(migrate.Live)       // packets arrive
	Moving     = State(migrate.Moving)     // the network has changed
	Suspect    = State(migrate.Suspect)    // an answer is overdue
	Offline    = State(migrate.Offline)    // no path works
)

func (s State) String() string { return migrate.State(s).String() }

// A Transport is what a connection runs over.
type Transport int

const (
	QUIC = Transport(migrate.QUIC)
	TCP  = Transport(migrate.TCP)
	SSH  = Transport(migrate.SSH) // a [Tunnel]
)

func (t Transport) String() string { return migrate.Transport(t).String() }

// A Candidate is a way to dial a server.
type Candidate struct {
	Transport Transport
	Remote    netip.AddrPort // of the server
	Interface string         // over which packets leave, "" if not known
	Source    netip.Addr     // from which they leave
	Bound     bool           // the socket is bound to the interface, which the system may change otherwise
}

func publicCandidate(c migrate.Candidate) Candidate {
	return Candidate{Transport(c.Transport), c.Remote, c.Interface, c.Source, c.Bound}
}

func (c Candidate) internal() migrate.Candidate {
	return migrate.Candidate{
		Transport: migrate.Transport(c.Transport), Remote: c.Remote,
		Interface: c.Interface, Source: c.Source, Bound: c.Bound,
	}
}

// A LinkState describes the connection of a session to its server.
type LinkState struct {
	State    State
	Since    time.Time
	Attempts int // to reach the server since contact was lost
	// Backlog is about how many bytes of output the server has not sent, if they are many.
	Backlog uint64
}

// A Gap is output that will never come.
type Gap struct {
	From, To uint64 // the first and the last frame
	Bytes    uint64 // of payload in them: of output, and of changes of the size, some 30 each

	// Snapshot is what a terminal that was just reset needs to be where it would be after them, or nil.
	Snapshot []byte
}

// Counters count what a session has seen.
type Counters struct {
	Duplicates  uint64 // frames received again, and dropped
	Reordered   uint64 // frames received before an earlier one
	Gaps        uint64 // gaps received
	GapFrames   uint64 // frames in those gaps
	GapBytes    uint64 // bytes of payload in those gaps
	Evicted     uint64 // gaps sent because frames had left the log before the server had them
	Corrupted   uint64 // datagrams and streams with bytes that are not a frame
	Resends     uint64 // datagrams that carried nothing new
	ResentBytes uint64 // bytes in those
}

// Errors that end [Session.Run].
var (
	// ErrGone means that the server no longer has the session.
	ErrGone = errors.New("the session is gone")
	// ErrLeft means that Leave was called: the session continues on the server.
	ErrLeft = errors.New("left the session")
	// ErrLost means that output of a program without a terminal was lost.
	ErrLost = errors.New("output was lost")
	// ErrDamaged means that no carrier can bring the input that comes next. The program would not notice a gap in it.
	ErrDamaged = errors.New("input was lost: the memory of this machine has changed it, and may be faulty")
)

// errParted is why a session ends for which Part was called.
var errParted = errors.New("left the session at once")

// A WithdrawnError ends a session's Run because what let this client in does so no more. The
// session continues on the server.
type WithdrawnError struct{ Reason string }

func (e *WithdrawnError) Error() string { return "access was withdrawn: " + e.Reason }

// A DisplacedError ends a session's Run because another client took it over.
type DisplacedError struct{ By string }

func (e *DisplacedError) Error() string { return "the session was taken over by " + e.By }
