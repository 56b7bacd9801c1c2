package wire

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/fxamacker/cbor/v2"
)

// A SessionID names a session. It is random, so that nobody can guess one.
type SessionID [16]byte

func (id SessionID) String() string { return hex.EncodeToString(id[:]) }

// ParseSessionID is the inverse of String.
func ParseSessionID(s string) (SessionID, error) {
	var id SessionID
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("not a session id: %q", s)
	}
	return SessionID(b), nil
}

// An InstanceID names a client process, random as well. All carriers of one
// instance are the same attachment.
type InstanceID [16]byte

// Limits of fields. What exceeds them is refused.
const (
	MaxKeys    = 64  // public keys that a client offers
	MaxEnv     = 64  // environment variables
	MaxName    = 32  // bytes of a session's name
	MaxSummary = 256 // bytes of a command line as listed
)

// Hello is the first message of a client that has to authenticate.
type Hello struct {
	Software string   `cbor:"1,keyasint"` // name and version, for logs
	User     string   `cbor:"2,keyasint"` // account; empty with a ticket
	Keys     [][]byte `cbor:"3,keyasint"` // public keys (RFC 4253, 6.6) that the client can sign with, best first
}

// Offer answers a Hello, or an Answer that did not do: the keys among those in
// Hello that the account accepts.
type Offer struct {
	Keys [][]byte `cbor:"1,keyasint"`
}

// Answer proves that the client holds a key: its signature (SSHSIG) over the
// TLS exporter of this connection.
type Answer struct {
	Key       []byte `cbor:"1,keyasint"`
	Signature []byte `cbor:"2,keyasint"`
}

// Ticket proves that the client got a grant on the machine itself.
type Ticket struct {
	Ticket []byte `cbor:"1,keyasint"`
}

// Denied ends a connection whose client has not proven who it is. It says
// nothing more, but to a Resume.
type Denied struct {
	Boot string `cbor:"1,keyasint"` // see Attached
}

// A Mode says what Attach does when the session exists or does not.
type Mode uint8

// The modes.
const (
	ModeCreate         Mode = 0 // always a new session
	ModeAttachOrCreate Mode = 1 // the named one, made if it does not exist
	ModeAttach         Mode = 2 // the named one, or the latest detached one; never a new one
)

// Attach asks for a session, new or not. The client becomes its writer.
type Attach struct {
	Mode     Mode        `cbor:"1,keyasint"`
	Session  string      `cbor:"2,keyasint"` // name, or the start of an id
	Instance InstanceID  `cbor:"3,keyasint"`
	PTY      bool        `cbor:"4,keyasint"`
	Size     [4]uint16   `cbor:"5,keyasint"` // columns, rows, and pixels of both or 0
	Env      [][2]string `cbor:"6,keyasint"` // names and values
	Command  string      `cbor:"7,keyasint"` // for the shell's -c; empty for a login shell
}

// Attached answers Attach and Resume is made of what it says.
type Attached struct {
	ID       SessionID `cbor:"1,keyasint"`
	UID      uint32    `cbor:"2,keyasint"` // the account's
	Name     string    `cbor:"3,keyasint"`
	Secret   []byte    `cbor:"4,keyasint"` // for the proofs of this instance's resumes
	Software string    `cbor:"5,keyasint"` // the holder's name and version
	Features []string  `cbor:"6,keyasint"` // what the holder can do beyond this version
	PTY      bool      `cbor:"7,keyasint"`
	Created  bool      `cbor:"8,keyasint"`
	First    uint64    `cbor:"9,keyasint"`  // the first frame of the output that is sent
	Offset   uint64    `cbor:"10,keyasint"` // its offset
	Live     uint64    `cbor:"11,keyasint"` // frames before this one were shown to somebody, or nobody, before
	Skip     uint64    `cbor:"12,keyasint"` // bytes of output to leave out: the rest of a line
	Boot     string    `cbor:"13,keyasint"` // differs after the machine was started anew
}

// Resumed answers a Resume whose proof holds. Frames follow.
type Resumed struct{}

// Resume brings another carrier to an attachment. It has a fixed size and form,
// so that a daemon passes it to a holder as it is.
type Resume struct {
	UID      uint32 // of the session's account
	ID       SessionID
	Instance InstanceID
	N        uint64   // counts up; each is good once
	Proof    [32]byte // by the secret, over all the others
}

// ResumeSize is the size of a Resume's payload, in bytes.
const ResumeSize = 4 + 16 + 16 + 8 + 32

// Statement returns what a resume's proof is about.
func (r *Resume) Statement() []byte {
	b := binary.BigEndian.AppendUint32(nil, r.UID)
	b = append(b, r.ID[:]...)
	b = append(b, r.Instance[:]...)
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
	r.N = binary.BigEndian.Uint64(b)
	copy(r.Proof[:], b[8:])
	return nil
}

// List asks for the account's sessions.
type List struct{}

// Listing answers List.
type Listing struct {
	Sessions []cbor.RawMessage `cbor:"1,keyasint"` // each an Info
	More     int               `cbor:"2,keyasint"` // sessions that are left out: one message does not hold them
}

// A Phase is where a session is in its life.
type Phase uint8

// The phases.
const (
	PhaseAttached Phase = 1 // a client is connected
	PhaseDetached Phase = 2 // none is
	PhaseExited   Phase = 3 // the program has ended, nobody has seen how
)

// Info describes a session to people.
type Info struct {
	ID      SessionID `cbor:"1,keyasint"`
	Name    string    `cbor:"2,keyasint"`
	Phase   Phase     `cbor:"3,keyasint"`
	Since   int64     `cbor:"4,keyasint"` // of the phase, Unix seconds
	Created int64     `cbor:"5,keyasint"` // Unix seconds
	PTY     bool      `cbor:"6,keyasint"`
	Cols    uint16    `cbor:"7,keyasint"`
	Rows    uint16    `cbor:"8,keyasint"`
	Clients []string  `cbor:"9,keyasint"` // who is connected, and from where
	Command string    `cbor:"10,keyasint"`
	Status  uint8     `cbor:"11,keyasint"` // exit status
}

// DecodeInfo decodes an element of a Listing.
func DecodeInfo(raw cbor.RawMessage) (Info, error) {
	var info Info
	err := decMode.Unmarshal(raw, &info)
	return info, err
}

// Kill ends a session. Done answers it.
type Kill struct {
	Session string `cbor:"1,keyasint"` // name, or the start of an id
}

// Done says that what was asked for has been done.
type Done struct{}

// A Code tells clients why something was refused, where they may care.
type Code uint8

// The codes.
const (
	CodeFailed    Code = 0 // see the text
	CodeNoSession Code = 1 // there is none by that name
	CodeDisplaced Code = 2 // another client has taken the session over
	CodeUnknown   Code = 3 // the message is of a type that the server does not know
)

// Error says to an authenticated client why something was not done.
type Error struct {
	Code Code   `cbor:"1,keyasint"`
	Text string `cbor:"2,keyasint"`
}

// Open is the first message of a daemon to a holder. The message that follows
// says what it is about: Attach, Resume, Kill or Query. A descriptor passed with
// it is the datagram lane.
type Open struct {
	Client string `cbor:"1,keyasint"` // who and from where, for people
	Scope  string `cbor:"2,keyasint"` // only a session of this scope may be touched; empty for any
	NoPTY  bool   `cbor:"3,keyasint"` // the client must not have a terminal
}

// Spec is all that a new holder is told.
type Spec struct {
	ID          SessionID     `cbor:"1,keyasint"`
	Name        string        `cbor:"2,keyasint"`
	Scope       string        `cbor:"3,keyasint"`
	Base        string        `cbor:"4,keyasint"` // of the directory for its socket
	Software    string        `cbor:"5,keyasint"`
	Argv        []string      `cbor:"6,keyasint"` // what to run: its name for itself may differ
	Path        string        `cbor:"7,keyasint"` // the file to run
	Env         []string      `cbor:"8,keyasint"`
	Dir         string        `cbor:"9,keyasint"` // working directory, or else /
	PTY         bool          `cbor:"10,keyasint"`
	Size        [4]uint16     `cbor:"11,keyasint"`
	Command     string        `cbor:"12,keyasint"` // as listed
	Buffer      int           `cbor:"13,keyasint"` // capacity of the ring, bytes
	DetachedTTL time.Duration `cbor:"14,keyasint"` // 0: keep
	ExitedTTL   time.Duration `cbor:"15,keyasint"`
	PipeTTL     time.Duration `cbor:"16,keyasint"`
}

// Query asks a holder for its State.
type Query struct{}

// State answers Query. Its first part has a fixed form, for the daemon; Info is
// for the client, and passed on as it is.
type State struct {
	Memory  uint64 // bytes of memory in the session's ring
	Phase   Phase
	Since   int64 // of the phase, Unix nanoseconds
	Visible bool  // to the scope of the Open before; otherwise the daemon alone may know
	PTY     bool  // a client may attach to it
	Name    string
	Info    cbor.RawMessage // empty if not visible
}

const stateFixed = 8 + 1 + 8 + 1 + 1

// The flags of a State.
const (
	flagVisible = 1 << 0
	flagPTY     = 1 << 1
)

func (s *State) encode() ([]byte, error) {
	if len(s.Name) > MaxName {
		return nil, fmt.Errorf("name of %d bytes", len(s.Name))
	}
	b := binary.BigEndian.AppendUint64(nil, s.Memory)
	b = append(b, byte(s.Phase))
	b = binary.BigEndian.AppendUint64(b, uint64(s.Since))
	var flags byte
	if s.Visible {
		flags |= flagVisible
	}
	if s.PTY {
		flags |= flagPTY
	}
	b = append(b, flags, byte(len(s.Name)))
	b = append(b, s.Name...)
	return append(b, s.Info...), nil
}

func (s *State) decode(b []byte) error {
	if len(b) < stateFixed || len(b) < stateFixed+int(b[stateFixed-1]) {
		return errors.New("state truncated")
	}
	if n := int(b[stateFixed-1]); n > MaxName {
		return fmt.Errorf("name of %d bytes", n)
	}
	s.Memory = binary.BigEndian.Uint64(b)
	s.Phase = Phase(b[8])
	s.Since = int64(binary.BigEndian.Uint64(b[9:]))
	s.Visible, s.PTY = b[17]&flagVisible != 0, b[17]&flagPTY != 0
	name := stateFixed + int(b[stateFixed-1])
	s.Name, s.Info = string(b[stateFixed:name]), cbor.RawMessage(b[name:])
	return nil
}

// EncodeInfo encodes an Info for a State.
func EncodeInfo(info Info) (cbor.RawMessage, error) { return encMode.Marshal(info) }

func (*Hello) Type() Type    { return TypeHello }
func (*Offer) Type() Type    { return TypeOffer }
func (*Answer) Type() Type   { return TypeAnswer }
func (*Ticket) Type() Type   { return TypeTicket }
func (*Denied) Type() Type   { return TypeDenied }
func (*Attach) Type() Type   { return TypeAttach }
func (*Attached) Type() Type { return TypeAttached }
func (*Resume) Type() Type   { return TypeResume }
func (*Resumed) Type() Type  { return TypeResumed }
func (*List) Type() Type     { return TypeList }
func (*Listing) Type() Type  { return TypeListing }
func (*Kill) Type() Type     { return TypeKill }
func (*Done) Type() Type     { return TypeDone }
func (*Error) Type() Type    { return TypeError }
func (*Open) Type() Type     { return TypeOpen }
func (*Query) Type() Type    { return TypeQuery }
func (*State) Type() Type    { return TypeState }
func (*Grant) Type() Type    { return TypeGrant }
func (*Spec) Type() Type     { return TypeSpec }
