package migrate

import "time"

// A State describes a link, or a path.
type State int

// The states. From Live on, each is worse than the one before.
const (
	// Connecting: there has been no carrier yet.
	Connecting State = iota
	// Live: a path is trusted: packets arrive, and an overdue ack has not lasted (see path.go).
	Live
	// Moving: the network has changed under the path. Other candidates are dialed.
	Moving
	// Suspect: an answer is overdue. Other candidates are dialed.
	Suspect
	// Offline: no path works. Dials continue in rounds.
	Offline
)

func (s State) String() string {
	return [...]string{"connecting", "live", "moving", "suspect", "offline"}[s]
}

// An Event is one of the types below, or nil if only time has passed.
type Event any

// Events.
type (
	// Started says that the session began on a carrier, which has the ID 0.
	Started struct{ Candidate Candidate }
	// NetworkChanged has all candidates that there are now.
	NetworkChanged struct{ Candidates []Candidate }
	// Woke says that the machine has slept: everything known may be out of date.
	Woke struct{}
	// Starved says that this client itself did not run until now, although a deadline had passed: it was stopped, or
	// the machine is busy. Silence until now says nothing, because packets that arrived meanwhile are not read yet.
	Starved struct{}
	// Heard says that a packet from the server arrived on a carrier. The first one turns a dial into a path.
	Heard struct {
		ID  ID
		RTT time.Duration // of the carrier, 0 if not known
		At  time.Time     // when the last packet arrived; zero means now
	}
	// Answered says that the server has answered a knock, which anybody on the path can forge.
	Answered struct{ Candidate Candidate }
	// Down says that a carrier has ended, or that a dial has failed.
	Down struct{ ID ID }
	// Unacked says since when input waits for an ack of the server, or zero if none does.
	Unacked struct{ Since time.Time }
	// Bulk says whether a backlog lasts at either end. The owner repeats it, at intervals of BulkInterval, from when it
	// becomes true until it is false.
	Bulk struct{ Limited bool }
	// Traffic says that input was sent or output was received.
	Traffic struct{}
)

// An Action is one of the types below.
type Action any

// Actions.
type (
	// Dial starts a dial under a new ID. A carrier that stands by carries only pings until it is activated.
	Dial struct {
		ID        ID
		Candidate Candidate
		StandBy   bool
		Bulk      bool // it carries bulk data only, beside another
		Fresh     bool // a whole handshake is to make its keys, without those of an earlier one
	}
	// Knock sends a small packet, outside of any connection, that a server answers. A dial to one
	// that cannot be reached costs many times as much.
	Knock struct{ Candidate Candidate }
	// Activate makes a carrier that stands by carry all frames.
	Activate struct{ ID ID }
	// Close ends a carrier or a dial.
	Close struct{ ID ID }
	// Abandon ends a dial that was not answered. It sends nothing: nobody would receive it.
	Abandon struct{ ID ID }
	// StandBy makes a carrier that carries frames stand by.
	StandBy struct{ ID ID }
	// Ping sends something on a carrier that the server answers. A short ping costs less, but a server
	// that has been restarted does not answer it.
	Ping struct {
		ID    ID
		Short bool
	}
)
