package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// A Mode says whether Attach uses an existing session or starts one.
type Mode uint8

// The modes.
const (
	ModeCreate         Mode = 0 // always a new session
	ModeAttachOrCreate Mode = 1 // the named session, or a new one with that name
	ModeAttach         Mode = 2 // the named session, or the latest detached one; never a new one
)

// A Role says what a client may do in a session.
type Role uint8

// The roles.
const (
	RoleWriter Role = 0 // it types, and displaces the writer before it
	RoleShare  Role = 1 // it types beside the writer
	RoleWatch  Role = 2 // it sees the terminal, and can change nothing
	RolePeek   Role = 3 // the same for a moment: nobody is told of it
)

// Known reports whether this version knows a role. A client must not get another role than
// the one that it has asked for.
func (r Role) Known() bool { return r <= RolePeek }

// String returns a word for people.
func (r Role) String() string {
	switch r {
	case RoleWriter:
		return "writer"
	case RoleShare:
		return "share"
	case RoleWatch:
		return "watch"
	case RolePeek:
		return "peek"
	}
	return fmt.Sprint("role ", uint8(r))
}

// ReadOnly reports whether a client in this role can change nothing.
func (r Role) ReadOnly() bool { return r == RoleWatch || r == RolePeek }

// A Side says what the program of a side pipe does. It is 0 of a session.
type Side uint8

// The kinds of side pipes.
const (
	SideForward Side = 1 // forwards connections
	SideFiles   Side = 2 // moves files
)

// Known reports whether this version knows a kind of side pipes.
func (s Side) Known() bool { return s <= SideFiles }

// String returns the name of such a side pipe's sessions.
func (s Side) String() string {
	switch s {
	case SideForward:
		return "forward"
	case SideFiles:
		return "files"
	}
	return fmt.Sprint("side ", uint8(s))
}

// A ReplayKind says what a client gets of the output from before its attach.
type ReplayKind uint8

// The kinds of replay. Receivers take others for ReplayRaw.
const (
	ReplayRaw    ReplayKind = 0 // the end of the output as it was
	ReplayScreen ReplayKind = 1 // a snapshot of the screen, with lines of the scrollback
	ReplayNone   ReplayKind = 2 // nothing
	ReplayFrom   ReplayKind = 3 // the output as it was, from an offset on
)

// A Replay describes what a client gets of the output from before its attach.
type Replay struct {
	Kind  ReplayKind `cbor:"1,keyasint"`
	Lines uint32     `cbor:"2,keyasint"` // of the scrollback at most, with ReplayScreen

	// From is the offset of the first byte of the output that is wanted, with ReplayFrom. For a client that gets events it
	// is the number of the first one.
	From uint64 `cbor:"3,keyasint,omitempty"`
}

// The values of Attach.Hints. 0 asks for none.
const (
	HintsPredict uint8 = 1 // for the prediction of what keys will show
	HintsProgram uint8 = 2 // also whether the program waits for input, for clients that no person types in
)

// MaxInput is how many bytes a frame of input of this client has.
const MaxInput = 16 << 10

// Attach asks for a session, in which the client gets a role.
type Attach struct {
	Mode     Mode        `cbor:"1,keyasint"`
	Session  string      `cbor:"2,keyasint"` // name, or the start of an id
	Instance InstanceID  `cbor:"3,keyasint"`
	PTY      bool        `cbor:"4,keyasint"`
	Size     Size        `cbor:"5,keyasint"`
	Env      [][2]string `cbor:"6,keyasint"` // names and values
	Command  string      `cbor:"7,keyasint"` // for the shell's -c; empty for a login shell
	Role     Role        `cbor:"8,keyasint"`
	Replay   Replay      `cbor:"9,keyasint"`
	Skip     bool        `cbor:"10,keyasint"` // a client that falls far behind gets a snapshot

	// Compression is what both ends may compress: 0 nothing, 1 what their policies select, 2 all.
	Compression uint8 `cbor:"11,keyasint"`

	Hints uint8 `cbor:"12,keyasint"` // which hints of the terminal the client wants

	// Whole is for a client that only watches, and records: it gets all output that the holder has.
	Whole bool `cbor:"13,keyasint,omitempty"`

	// Own gives the session the size of the client's terminal, in role share: a writer's attach always does.
	Own bool `cbor:"14,keyasint,omitempty"`

	// Machine is what the client's machine calls itself, for the client that this one displaces.
	Machine string `cbor:"15,keyasint,omitempty" text:"machine"`

	Dir string `cbor:"16,keyasint,omitempty"` // where the program starts, from the home directory on

	// Required is how many variables, the last ones of Env, the server must accept: else it starts no session.
	Required uint8 `cbor:"17,keyasint,omitempty"`

	// Input is the payload of the client's first frame, an [Entry], for a terminal and in a role that types.
	Input []byte `cbor:"18,keyasint,omitempty"`

	// Events is for a client that only watches: it gets the session's events in place of the output, from the one with
	// the number Replay.From on.
	Events bool `cbor:"19,keyasint,omitempty"`

	// Notify is for a client that tells a person who does not look at it what happens.
	Notify *Notify `cbor:"20,keyasint,omitempty"`

	// Side is for a new side pipe in place of a session.
	Side Side `cbor:"21,keyasint,omitempty"`

	// Agent is where this client offers its ssh agent on the server, as of [OfferAgent]: an [AgentID], or nothing. The program of
	// a new session gets SSH_AUTH_SOCK then, if the login allows that.
	Agent []byte `cbor:"22,keyasint,omitempty"`

	// Terminfo is the compiled entry of the terminal that TERM of Env names, as term(5) describes it, for a new session.
	Terminfo []byte `cbor:"23,keyasint,omitempty"`
}

// An AgentID is the secret by which a session reaches the ssh agent that a client offers on a server. The client has drawn
// it at random: a process of the account that knows it can use the agent.
type AgentID [16]byte

// ParseAgentID returns the id in a message. It is zero if there is none, or what is there is none.
func ParseAgentID(b []byte) (id AgentID) {
	if len(b) == len(id) {
		copy(id[:], b)
	}
	return id
}

// maxAgentMessage bounds a message to or of an ssh agent, in bytes, as ssh-agent does.
const maxAgentMessage = 256 << 10

// ParseAgentLength returns how many bytes of a message to or of an ssh agent follow its length, the first 4 bytes of b.
func ParseAgentLength(b []byte) (uint32, error) {
	n := binary.BigEndian.Uint32(b)
	if n == 0 || n > maxAgentMessage {
		return 0, errors.New("a message of an ssh agent with an impossible length")
	}
	return n, nil
}

// Notify asks for NoticeWaits and, with an endpoint, for messages by Web Push while the client has not got the output. It is
// the subscription of a device.
type Notify struct {
	Endpoint string `cbor:"1,keyasint,omitempty"` // URL, a secret
	Key      []byte `cbor:"2,keyasint,omitempty"` // of the device, P-256, uncompressed
	Auth     []byte `cbor:"3,keyasint,omitempty"` // a secret of both
	Signer   []byte `cbor:"4,keyasint,omitempty"` // the private key, P-256, for whose messages the device has subscribed
}

// Attached answers Attach. It has what the client needs to resume.
type Attached struct {
	ID      SessionID `cbor:"1,keyasint"`
	UID     uint32    `cbor:"2,keyasint"` // the account's
	Name    string    `cbor:"3,keyasint" text:"name"`
	Secret  []byte    `cbor:"4,keyasint"` // for the proofs of this instance's resumes
	PTY     bool      `cbor:"5,keyasint"`
	Created bool      `cbor:"6,keyasint"`
	First   uint64    `cbor:"7,keyasint"`  // the first frame of the output that is sent
	Offset  uint64    `cbor:"8,keyasint"`  // its offset
	Live    uint64    `cbor:"9,keyasint"`  // the first live frame: those before it are history
	Trim    uint64    `cbor:"10,keyasint"` // bytes of output that the client does not show: the rest of a line
	Boot    BootMark  `cbor:"11,keyasint"` // of the holder
	Size    Size      `cbor:"12,keyasint"` // of the session's terminal
	Role    Role      `cbor:"13,keyasint"` // of this client
	Unseen  uint64    `cbor:"14,keyasint"` // about how many lines no client has seen that a snapshot leaves out

	Number uint64 `cbor:"15,keyasint,omitempty"` // of this client in the session
	Owner  uint64 `cbor:"16,keyasint,omitempty"` // the number of the client whose terminal gives the size

	Activity *Activity `cbor:"17,keyasint,omitempty"` // with RolePeek, of a program that runs on a terminal
	Events   bool      `cbor:"18,keyasint,omitempty"` // First, Offset and Live are of the log of events

	// Typists are the clients that have typed since the last [Entry], for a client with HintsProgram.
	Typists []Typist `cbor:"19,keyasint,omitempty"`

	// Again is the payload of the [Entered] of an earlier entry that has the ID of the one in Attach.Input: the output begins
	// at its offset.
	Again []byte `cbor:"20,keyasint,omitempty"`

	Side Side `cbor:"21,keyasint,omitempty"` // of which kind the side pipe is
}

// Resumed answers a Resume whose proof is valid. Frames follow. Its fields are for the
// daemon only, which sends the client none: the holder repeats what Open said of the login
// when the client attached.
type Resumed struct {
	Account string `cbor:"1,keyasint"`
	Key     []byte `cbor:"2,keyasint"`
	Scope   string `cbor:"3,keyasint"`
	NoPTY   bool   `cbor:"4,keyasint"`

	// Away is for how long the holder had not heard the client.
	Away time.Duration `cbor:"5,keyasint,omitempty"`

	Proof    string `cbor:"6,keyasint,omitempty" text:"summary"`
	Reported string `cbor:"7,keyasint,omitempty" text:"summary"`
	Proven   int64  `cbor:"8,keyasint,omitempty"`
}

// Resume adds a carrier to an attachment. It has a fixed size and form: the daemon
// passes it on to the holder of a client that has proven nothing yet.
type Resume struct {
	UID      uint32 // of the session's account
	ID       SessionID
	Instance InstanceID
	Boot     BootMark // as in Attached
	N        uint64   // number of the proof, which the holder accepts once
	Proof    [32]byte // HMAC with the secret over the other fields
}

// ResumeSize is the size of a Resume's payload, in bytes.
const ResumeSize = 4 + 16 + 16 + 8 + 8 + 32

// Statement returns the bytes that the proof covers.
func (r *Resume) Statement() []byte {
	b := binary.BigEndian.AppendUint32(nil, r.UID)
	b = append(b, r.ID[:]...)
	b = append(b, r.Instance[:]...)
	b = append(b, r.Boot[:]...)
	return binary.BigEndian.AppendUint64(b, r.N)
}

func (r *Resume) encode() ([]byte, error) {
	return append(r.Statement(), r.Proof[:]...), nil
}

func (r *Resume) decode(b []byte) error {
	if len(b) != ResumeSize {
		return fmt.Errorf("resume of %d bytes, want %d", len(b), ResumeSize)
	}
	r.UID = binary.BigEndian.Uint32(b)
	b = b[4:]
	b = b[copy(r.ID[:], b):]
	b = b[copy(r.Instance[:], b):]
	b = b[copy(r.Boot[:], b):]
	r.N = binary.BigEndian.Uint64(b)
	copy(r.Proof[:], b[8:])
	return nil
}
