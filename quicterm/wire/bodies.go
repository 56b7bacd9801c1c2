package wire

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"

	"github.com/fxamacker/cbor/v2"
)

// A SessionID identifies a session. It is random, so it cannot be guessed.
type SessionID [16]byte

func (id SessionID) String() string { return hex.EncodeToString(id[:]) }

// Short returns the digits of an id that a log has.
func (id SessionID) Short() string { return id.String()[:8] }

// ParseSessionID is the inverse of String.
func ParseSessionID(s string) (SessionID, error) {
	var id SessionID
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("not a session id: %q", s)
	}
	return SessionID(b), nil
}

// An InstanceID identifies a client process that attaches to a session. It is random.
// All carriers of an instance are one attachment.
type InstanceID [16]byte

// A BootMark is the same for a session until its machine is started anew, and means nothing
// without the session's id. Zeros mean that it is not known.
type BootMark [8]byte

// Differs reports whether two marks are known and are of different runs of the machine.
func (m BootMark) Differs(other BootMark) bool {
	return m != BootMark{} && other != BootMark{} && m != other
}

// MaxAnswer is the size of the largest payload that a holder answers with, in bytes. A
// State with the longest command takes a fourth of it, and a Resumed with an RSA key of 16384
// bits three fourths. The daemon asks thousands of holders at a time, which are not its own.
const MaxAnswer = 3 << 10

// Limits of fields. A receiver refuses what exceeds them.
const (
	MaxKeys     = 64       // public keys that a client offers
	MaxEnv      = 64       // environment variables
	MaxEnvBytes = 32 << 10 // of them all, as NAME=value: with the longest command, they fit into one message
	MaxName     = 32       // bytes of a session's name
	MaxMachine  = 64       // bytes of the name of a client's machine: longer ones are cut
	MaxSummary  = 256      // bytes of a command line as listed
	MaxDir      = 1024     // bytes of a directory in an Activity: a longer one is left out
	MaxTerminfo = 16 << 10 // bytes of a terminfo entry: a longer one is ignored. Those of terminals have up to 5 KiB
)

// ValidName reports whether a session may have a name: a word for a shell, too, of letters and digits, and behind the
// first one also of "." "_" "-".
func ValidName(name string) bool {
	odd := strings.TrimLeft(name, letters+digits)
	return len(name) <= MaxName && len(odd) < len(name) && strings.Trim(odd, letters+digits+"._-") == ""
}

const (
	letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	digits  = "0123456789"
)

// Hello is the first message of a client that has to authenticate. After one with More set,
// and an Offer, the client may send another one with other keys.
type Hello struct {
	Software string   `cbor:"1,keyasint" text:"summary"` // name and version, for logs
	User     string   `cbor:"2,keyasint"`                // account; ignored with a token
	Keys     [][]byte `cbor:"3,keyasint"`                // public keys (RFC 4253, 6.6) of the client, best first
	More     bool     `cbor:"4,keyasint"`                // the client has other keys as well
}

// Offer answers a Hello, or an Answer that failed. It lists the keys of Hello that the account accepts.
type Offer struct {
	Keys [][]byte `cbor:"1,keyasint"`
	Time []byte   `cbor:"2,keyasint"` // the server's, for the Answers that follow
}

// Answer proves that the client holds a key: its signature (SSHSIG) over a statement
// of the server's host key, the account, the time and this connection.
type Answer struct {
	Key       []byte `cbor:"1,keyasint"`
	Signature []byte `cbor:"2,keyasint"`
	Host      []byte `cbor:"3,keyasint"` // SHA-256 of the server's host key, as signed
	Time      []byte `cbor:"4,keyasint"` // as signed: the client's, or that of the last Offer
}

// Token proves that the client has got a grant on the server's machine.
type Token struct {
	Token []byte `cbor:"1,keyasint"`
}

// Denied ends a connection whose client has proven nothing.
type Denied struct {
	Gone bool `cbor:"1,keyasint"` // the session of a Resume has ended: its holder was killed, or the machine started anew
}

// List asks for the account's sessions.
type List struct{}

// Listing answers List.
type Listing struct {
	Sessions []cbor.RawMessage `cbor:"1,keyasint"` // each an Info
	More     int               `cbor:"2,keyasint"` // number of sessions that do not fit into the message
}

// A Phase is a phase of the life of a session.
type Phase uint8

// The phases.
const (
	PhaseAttached Phase = 1 // the writer is connected
	PhaseDetached Phase = 2 // no writer is connected
	PhaseExited   Phase = 3 // the program has ended, and no client has seen its Exit
	PhaseLost     Phase = 4 // the session is gone, and its record is on disk (9.6 of SPEC.md)
)

// String returns a word for people.
func (p Phase) String() string {
	switch p {
	case PhaseAttached:
		return "attached"
	case PhaseDetached:
		return "detached"
	case PhaseExited:
		return "exited"
	case PhaseLost:
		return "lost"
	}
	return "unknown"
}

// Info describes a session to people.
type Info struct {
	ID      SessionID `cbor:"1,keyasint"`
	Name    string    `cbor:"2,keyasint" text:"name"`
	Phase   Phase     `cbor:"3,keyasint"`
	Since   int64     `cbor:"4,keyasint"` // start of the phase, Unix seconds
	Created int64     `cbor:"5,keyasint"` // Unix seconds
	PTY     bool      `cbor:"6,keyasint"`
	Cols    uint16    `cbor:"7,keyasint"`
	Rows    uint16    `cbor:"8,keyasint"`
	Members []Member  `cbor:"9,keyasint,omitempty"` // connected clients, the one that came first first
	Command string    `cbor:"10,keyasint" text:"summary"`
	Status  uint8     `cbor:"11,keyasint"` // exit status, in PhaseExited
	// when the writer was heard last, Unix seconds; 0 if that is not known
	Heard int64 `cbor:"12,keyasint,omitempty"`
	More  int   `cbor:"13,keyasint,omitempty"` // members that EncodeInfo has left out

	Activity *Activity `cbor:"14,keyasint,omitempty"` // of a program that runs on a terminal, if Query asks for it
}

// A Member is a client that is connected to a session.
type Member struct {
	Client string `cbor:"1,keyasint" text:"client"` // account@address
	Role   Role   `cbor:"2,keyasint"`
	Since  int64  `cbor:"3,keyasint"` // when it attached, Unix seconds
}

// DecodeInfo decodes an element of a Listing.
func DecodeInfo(raw cbor.RawMessage) (Info, error) {
	var info Info
	err := decMode.Unmarshal(raw, &info)
	makePrintable(reflect.ValueOf(&info))
	return info, err
}

// Kill ends sessions. Done answers it or, if there are Others, Killed.
type Kill struct {
	Session string   `cbor:"1,keyasint"` // name, or the start of an id
	Others  []string `cbor:"3,keyasint,omitempty"`
}

// Killed says of each session of a Kill why it does not end; one that does has an empty Error.
type Killed struct {
	Errors []Error `cbor:"1,keyasint"`
}

// Rename gives a session another name. Done answers it.
type Rename struct {
	Session string `cbor:"1,keyasint"` // name, or the start of an id
	Name    string `cbor:"2,keyasint"` // the new one
}

// Revoke takes from clients of the account what they attached with: they can neither continue nor resume. Enrolled
// keys are removed: the one that is meant, and those that logins by it have enrolled. Revoked answers it.
type Revoke struct {
	Key []byte `cbor:"1,keyasint"` // SHA-256 of the public key by which they logged in
	All bool   `cbor:"2,keyasint"` // of all clients; Key is empty
}

// Revoked answers Revoke.
type Revoked struct {
	Clients uint32 `cbor:"1,keyasint"` // that have lost access
	Silent  uint32 `cbor:"2,keyasint"` // sessions that did not answer: their clients keep it
	Keys    uint32 `cbor:"3,keyasint"` // enrolled keys that were removed
}

// Clear makes a session forget the output that its clients have had. Cleared answers it.
type Clear struct {
	Session string `cbor:"1,keyasint"` // name, or the start of an id
}

// Cleared answers Clear.
type Cleared struct {
	Bytes uint64 `cbor:"1,keyasint"` // of output that are forgotten
	Lines uint64 `cbor:"2,keyasint"` // of the scrollback that are
	Kept  uint64 `cbor:"3,keyasint"` // bytes of output that are not: a client has not had them
}

// Describe asks the server to describe itself.
type Describe struct{}

// Description answers Describe.
type Description struct {
	Software    string `cbor:"1,keyasint" text:"summary"` // name and version
	Time        int64  `cbor:"2,keyasint"`                // the server's clock, Unix milliseconds
	Client      string `cbor:"3,keyasint" text:"client"`  // address and port of the client as seen here, or "ssh"
	Proof       string `cbor:"4,keyasint" text:"summary"` // of the login: the fingerprint of a key, "token" or "ssh"
	Sessions    uint32 `cbor:"5,keyasint"`                // of the account that the client may see
	MaxSessions uint32 `cbor:"6,keyasint"`
	Memory      uint64 `cbor:"7,keyasint"` // bytes that these sessions keep of their output
	MaxMemory   uint64 `cbor:"8,keyasint"` // bytes that the sessions of all accounts may keep
	Logout      Logout `cbor:"9,keyasint"`
	Granted     bool   `cbor:"10,keyasint"` // the daemon serves this account only, which has started it

	HostKey []byte `cbor:"11,keyasint"`                          // SHA-256 of the host key that is presented to a client that names no type
	Page    string `cbor:"12,keyasint,omitempty" text:"summary"` // URL of the page for browsers, if it has a certificate of the daemon
}

// A Logout is what becomes of the sessions when an account logs out of the server.
type Logout uint8

// The values of Logout. Receivers take others for LogoutUnknown.
const (
	LogoutUnknown Logout = 0
	LogoutKeeps   Logout = 1
	LogoutEnds    Logout = 2 // the machine's service manager ends them
)

// Done answers a request that has no other answer.
type Done struct{}

// A Code is the kind of an Error.
type Code uint8

// The codes.
const (
	CodeFailed    Code = 0 // see the text
	CodeNoSession Code = 1 // there is no such session
	CodeDisplaced Code = 2 // another client has become the writer; the text names it
	CodeUnknown   Code = 3 // the server does not know the type of the message
	CodeWithdrawn Code = 4 // what let the client in does so no more; the text says why
	CodeLost      Code = 5 // the session is lost; Lost says what it has left
)

// An Error tells an authenticated client why a request failed. Clients return it as an error.
type Error struct {
	Code Code   `cbor:"1,keyasint"`
	Text string `cbor:"2,keyasint" text:"error"`
	Lost *Lost  `cbor:"3,keyasint,omitempty"` // with CodeLost
}

func (e *Error) Error() string { return e.Text }

func (*Hello) Type() Type       { return TypeHello }
func (*Offer) Type() Type       { return TypeOffer }
func (*Answer) Type() Type      { return TypeAnswer }
func (*Token) Type() Type       { return TypeToken }
func (*Denied) Type() Type      { return TypeDenied }
func (*Attach) Type() Type      { return TypeAttach }
func (*Attached) Type() Type    { return TypeAttached }
func (*Resume) Type() Type      { return TypeResume }
func (*Resumed) Type() Type     { return TypeResumed }
func (*List) Type() Type        { return TypeList }
func (*Listing) Type() Type     { return TypeListing }
func (*Kill) Type() Type        { return TypeKill }
func (*Killed) Type() Type      { return TypeKilled }
func (*Rename) Type() Type      { return TypeRename }
func (*Done) Type() Type        { return TypeDone }
func (*Error) Type() Type       { return TypeError }
func (*Revoke) Type() Type      { return TypeRevoke }
func (*Revoked) Type() Type     { return TypeRevoked }
func (*Clear) Type() Type       { return TypeClear }
func (*Cleared) Type() Type     { return TypeCleared }
func (*Describe) Type() Type    { return TypeDescribe }
func (*Description) Type() Type { return TypeDescription }
func (*Open) Type() Type        { return TypeOpen }
func (*Query) Type() Type       { return TypeQuery }
func (*State) Type() Type       { return TypeState }
func (*Grant) Type() Type       { return TypeGrant }
func (*Launch) Type() Type      { return TypeLaunch }
func (*Ask) Type() Type         { return TypeAsk }
func (*Inspect) Type() Type     { return TypeInspect }
func (*Report) Type() Type      { return TypeReport }
func (*Records) Type() Type     { return TypeRecords }
func (*Started) Type() Type     { return TypeStarted }
func (*End) Type() Type         { return TypeEnd }
func (*Appeared) Type() Type    { return TypeAppeared }
func (*OfferFile) Type() Type   { return TypeOfferFile }
