package wire

import (
	"time"

	"github.com/fxamacker/cbor/v2"
)

// The messages between a daemon and the holders of sessions.

// Open is the first message of a daemon to a holder. A request follows: Attach, Resume,
// Kill or Query. A descriptor that is passed before it is the datagram lane.
type Open struct {
	Client string `cbor:"1,keyasint" text:"client"` // account@address of the client, for people
	Scope  string `cbor:"2,keyasint"`               // the request is only for a session of this scope; empty for any
	NoPTY  bool   `cbor:"3,keyasint"`               // the client may not have a terminal

	// Instance is that of an Attach, or zeros: State tells whether it asks again.
	Instance InstanceID `cbor:"4,keyasint"`

	// With Attach: the account and the public key (RFC 4253, 6.6) by which the client has
	// logged in. There is no key if a token was its proof.
	Account string `cbor:"5,keyasint"`
	Key     []byte `cbor:"6,keyasint"`

	// With Attach by a client without a key: "token" or "ssh", and what Ask has reported of its login.
	Proof    string `cbor:"7,keyasint,omitempty" text:"summary"`
	Reported string `cbor:"8,keyasint,omitempty" text:"summary"`

	// With Attach by a certificate: when the client has proven that it has it, Unix time.
	Proven int64 `cbor:"9,keyasint,omitempty"`

	// Guest is set for a client with a share, which may only attach.
	Guest *Guest `cbor:"10,keyasint,omitempty"`

	// Forwards is set for a client that may forward connections to any port.
	Forwards bool `cbor:"12,keyasint,omitempty"`
}

// A Guest is what a share allows in its session.
type Guest struct {
	Types bool  `cbor:"1,keyasint"`
	Until int64 `cbor:"2,keyasint"` // Unix seconds
}

// Launch describes a new session to its holder.
type Launch struct {
	ID    SessionID `cbor:"1,keyasint"`
	Name  string    `cbor:"2,keyasint"`
	Scope string    `cbor:"3,keyasint"`
	// replaces /run/quicterm; empty for the default directories (package rundir)
	Base        string        `cbor:"4,keyasint"`
	Argv        []string      `cbor:"5,keyasint"` // arguments of the program, its own name first
	Path        string        `cbor:"6,keyasint"` // file of the program
	Env         []string      `cbor:"7,keyasint"`
	Dir         string        `cbor:"8,keyasint"` // working directory; / if it does not exist
	PTY         bool          `cbor:"9,keyasint"`
	Size        Size          `cbor:"10,keyasint"`
	Command     string        `cbor:"11,keyasint"` // for Info
	Buffer      int           `cbor:"12,keyasint"` // bytes of output to keep
	DetachedTTL time.Duration `cbor:"13,keyasint"` // 0 for ever
	ExitedTTL   time.Duration `cbor:"14,keyasint"`
	PipeTTL     time.Duration `cbor:"15,keyasint"`
	Socket      string        `cbor:"16,keyasint"` // path of the socket that was passed; empty if the holder makes it
	Instance    InstanceID    `cbor:"17,keyasint"` // for which the session is made
	MaxWatchers int           `cbor:"18,keyasint"` // clients beside the writer; 0 for the default

	Persist *Persist `cbor:"19,keyasint,omitempty"` // nil keeps nothing on disk

	// Start is where the program starts in place of Dir, and counts from there: an error if that is no directory.
	Start string `cbor:"20,keyasint,omitempty"`

	Keys *KeyTask `cbor:"21,keyasint,omitempty"` // the process only does this, and there is no session

	// Side makes a side pipe, which no list shows: the program is that of the holder.
	Side Side `cbor:"22,keyasint,omitempty"`

	// Terminfo is that of Attach, for a program that cannot find an entry of its terminal.
	Terminfo []byte `cbor:"23,keyasint,omitempty"`

	Agent bool `cbor:"24,keyasint,omitempty"` // the program gets SSH_AUTH_SOCK: clients may offer their ssh agents
}

// Persist says where the records of lost sessions are, and what the process is started for.
type Persist struct {
	Task PersistTask `cbor:"1,keyasint"`
	Dir  string      `cbor:"2,keyasint"` // absolute path of the account's records
}

// A PersistTask is what a holder's process is started for.
type PersistTask uint8

// The tasks. For the last three, the process only answers.
const (
	PersistKeep   PersistTask = 0 // a new session, which keeps a record
	PersistList   PersistTask = 1 // Records answers
	PersistShow   PersistTask = 2 // the record with the ID of Launch: an Error with CodeLost answers
	PersistRemove PersistTask = 3 // the same is removed: Done answers
)

// Records answers the task PersistList: the sessions that are gone, those that were written last first.
type Records struct {
	States [][]byte `cbor:"1,keyasint"` // each as the payload of a State, in PhaseLost
}

// Started tells that a holder has started.
type Started struct{}

// End asks a holder to end its session, for an operator. Done answers it.
type End struct {
	Reason string `cbor:"1,keyasint,omitempty" text:"summary"` // for the people at its clients
}

// Appeared tells a holder that another session of its account was started. Done answers it.
type Appeared struct {
	Scope string `cbor:"1,keyasint"` // of that session: clients that may not see it are not told
}

// Query asks a holder for its State, with the Activity of the session if that is wanted.
type Query struct {
	Activity bool `cbor:"1,keyasint,omitempty"`
}

// Inspect asks a holder for its Report. With AtEnd, the holder answers when the session is over.
type Inspect struct {
	AtEnd bool `cbor:"1,keyasint,omitempty"`
}

// Report answers Inspect: what an operator sees of a session. Counts are since the session began.
type Report struct {
	Software   string        `cbor:"1,keyasint" text:"summary"` // name and version of the holder
	Name       string        `cbor:"2,keyasint" text:"name"`
	Phase      Phase         `cbor:"3,keyasint"`
	Since      int64         `cbor:"4,keyasint"` // start of the phase, Unix seconds
	Created    int64         `cbor:"5,keyasint"` // Unix seconds
	PTY        bool          `cbor:"6,keyasint"`
	Memory     uint64        `cbor:"7,keyasint"`                 // bytes that the output takes, as in State
	Ring       uint64        `cbor:"8,keyasint"`                 // bytes of those that the ring takes
	Capacity   uint64        `cbor:"9,keyasint"`                 // bytes that the ring may take
	RTT        time.Duration `cbor:"10,keyasint"`                // end to end, of the writer; 0 if not known
	Gaps       uint64        `cbor:"11,keyasint"`                // output that had left the ring before a client had it
	Duplicates uint64        `cbor:"12,keyasint"`                // frames of input that came again
	Corrupted  uint64        `cbor:"13,keyasint"`                // datagrams and streams with a bad CRC, or no frames
	Status     uint8         `cbor:"14,keyasint"`                // exit status, in PhaseExited
	Reason     string        `cbor:"15,keyasint" text:"summary"` // why the program was ended, as in Exit; may be empty
}

// State answers Query.
type State struct {
	Memory  uint64 `cbor:"1,keyasint"` // bytes of memory that the output takes
	Phase   Phase  `cbor:"2,keyasint"`
	Since   int64  `cbor:"3,keyasint"` // start of the phase, Unix nanoseconds
	Visible bool   `cbor:"4,keyasint"` // to clients of the scope in Open
	PTY     bool   `cbor:"5,keyasint"` // it has a terminal
	Own     bool   `cbor:"6,keyasint"` // it was made by a client of the scope in Open
	// Ended is that its program has ended. One that was killed is not visible then: it is only kept to tell its client.
	Ended   bool   `cbor:"7,keyasint"`
	Claimed bool   `cbor:"8,keyasint"` // the instance in Open has attached to it, or had it made
	Name    string `cbor:"9,keyasint"`
	Info    []byte `cbor:"10,keyasint"` // an encoded Info; empty if not visible

	Follows bool `cbor:"11,keyasint,omitempty"` // a client gets its events, in any scope: Appeared is for that
	Side    Side `cbor:"12,keyasint,omitempty"` // it is a side pipe, and not visible
}

// maxInfo is the size of an encoded Info in bytes: what a State with the longest name has room for.
const maxInfo = MaxAnswer - 42 - MaxName

// EncodeInfo encodes an Info for a State. It leaves out the last members if there is no room
// for all.
func EncodeInfo(info Info) (cbor.RawMessage, error) {
	for {
		raw, err := encMode.Marshal(info)
		if n := len(info.Members); err == nil && len(raw) > maxInfo && n > 0 {
			info.Members, info.More = info.Members[:n-1], info.More+1
			continue
		}
		return raw, err
	}
}
