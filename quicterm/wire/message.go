// Package wire encodes the control messages that clients, daemons and holders exchange
// before frames flow, and the payloads of the frames of a terminal session. SPEC.md beside
// it specifies the whole protocol.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"
	"time"

	"github.com/fxamacker/cbor/v2"
)

// ALPN names the protocol and its version in the TLS handshake (RFC 7301).
// Within a version, messages and fields are only ever added.
const ALPN = "quicterm/1"

// MaxMessage is the size of the largest payload of a message, in bytes: enough for the
// longest argument of a command that Linux accepts (128 KiB).
const MaxMessage = 192 << 10

// RequestsTime is how long after its proof a client may send requests. qt sends its only one with the proof.
const RequestsTime = 30 * time.Second

// A Type is the type of a message.
type Type uint8

// The types of messages. Those up to TypeOfferAgent are between client and server; the others
// never leave the machine.
const (
	TypeHello    Type = 1
	TypeOffer    Type = 2
	TypeAnswer   Type = 3
	TypeToken    Type = 4
	TypeDenied   Type = 5
	TypeAttach   Type = 6
	TypeAttached Type = 7
	TypeResume   Type = 8
	TypeResumed  Type = 9
	TypeList     Type = 10
	TypeListing  Type = 11
	TypeKill     Type = 12
	TypeDone     Type = 13
	TypeError    Type = 14
	TypeRevoke   Type = 15
	TypeRevoked  Type = 16
	TypeClear    Type = 17
	TypeCleared  Type = 18

	TypeRename Type = 19

	TypeDescribe    Type = 20
	TypeDescription Type = 21

	TypeKilled Type = 22

	TypeEnroll   Type = 23
	TypeEnrolled Type = 24
	TypeListKeys Type = 25
	TypeKeys     Type = 26

	TypeDial      Type = 27
	TypeListen    Type = 28
	TypeListening Type = 29
	TypeAccepted  Type = 30

	TypeOfferAgent Type = 31

	TypeOpen   Type = 32
	TypeQuery  Type = 33
	TypeState  Type = 34
	TypeGrant  Type = 35
	TypeLaunch Type = 36
	TypeAsk    Type = 37

	TypeInspect Type = 38
	TypeReport  Type = 39
	TypeRecords Type = 40
	TypeStarted Type = 41
	TypeEnd     Type = 42

	TypeAppeared  Type = 43
	TypeOfferFile Type = 44
)

// A Message is one message as it travels:
//
//	type u8 | length u24 | payload
//
// The payload is a CBOR map with integer keys (RFC 8949), except of Resume,
// which has a fixed form.
type Message struct {
	Type    Type
	Payload []byte
}

const headerSize = 4

// errTooLong is the error of a message that is longer than the limit.
var errTooLong = errors.New("message longer than allowed")

// Read reads a message with a payload of at most limit bytes, and no byte behind it. It
// allocates nothing for a longer payload. At the end of the stream it returns io.EOF,
// inside a message io.ErrUnexpectedEOF.
func Read(r io.Reader, limit int) (Message, error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return Message{}, err
	}
	word := binary.BigEndian.Uint32(header[:])
	n := int(word & 0xffffff)
	if n > min(limit, MaxMessage) {
		return Message{}, errTooLong
	}
	payload := make([]byte, n)
	if _, err := io.ReadFull(r, payload); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return Message{}, err
	}
	return Message{Type: Type(word >> 24), Payload: payload}, nil
}

// Append appends the encoding of m to b. It panics if the payload is longer
// than MaxMessage.
func (m Message) Append(b []byte) []byte {
	if len(m.Payload) > MaxMessage {
		panic(fmt.Sprintf("wire: message of %d bytes", len(m.Payload)))
	}
	b = binary.BigEndian.AppendUint32(b, uint32(m.Type)<<24|uint32(len(m.Payload)))
	return append(b, m.Payload...)
}

// Write writes a message in one call.
func Write(w io.Writer, m Message) error {
	_, err := w.Write(m.Append(nil))
	return err
}

// A Body is the content of a message: a pointer to a struct of this package.
type Body interface {
	Type() Type
}

// New encodes a message. It fails if the message would be longer than
// MaxMessage.
func New(v Body) (Message, error) {
	var payload []byte
	var err error
	if fixed, ok := v.(interface{ encode() ([]byte, error) }); ok {
		payload, err = fixed.encode()
	} else {
		payload, err = encMode.Marshal(v)
	}
	if err != nil {
		return Message{}, fmt.Errorf("encode message %d: %w", v.Type(), err)
	}
	if len(payload) > MaxMessage {
		return Message{}, errTooLong
	}
	return Message{Type: v.Type(), Payload: payload}, nil
}

// Send encodes and writes a message.
func Send(w io.Writer, v Body) error {
	m, err := New(v)
	if err != nil {
		return err
	}
	return Write(w, m)
}

// Decode decodes the payload of m into v, a pointer to the body of its type.
// It ignores unknown fields, and makes texts that people see [Printable].
func (m Message) Decode(v Body) error {
	if m.Type != v.Type() {
		return fmt.Errorf("message of type %d where %d was expected", m.Type, v.Type())
	}
	var err error
	if fixed, ok := v.(interface{ decode([]byte) error }); ok {
		err = fixed.decode(m.Payload)
	} else {
		err = decMode.Unmarshal(m.Payload, v)
	}
	if err != nil {
		return fmt.Errorf("message of type %d: %w", m.Type, err)
	}
	makePrintable(reflect.ValueOf(v))
	return nil
}

var (
	encMode = must(cbor.EncOptions{Sort: cbor.SortCanonical}.EncMode())

	// decMode accepts little more than what encMode makes, so that a message of n
	// bytes takes at most a small multiple of n in memory. Texts need not be UTF-8:
	// names of files and values of variables are not.
	decMode = must(cbor.DecOptions{
		UTF8:             cbor.UTF8DecodeInvalid,
		DupMapKey:        cbor.DupMapKeyEnforcedAPF,
		IndefLength:      cbor.IndefLengthForbidden,
		TagsMd:           cbor.TagsForbidden,
		MaxNestedLevels:  8,
		MaxArrayElements: 4096,
		MaxMapPairs:      1024,
	}.DecMode())
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
