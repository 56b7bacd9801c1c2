package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/quicterm/quicterm/buffer"
)

// The types of the frames in the logs of a terminal session. Receivers skip unknown types.
const (
	Stdout buffer.Type = 0x01 // bytes that the program wrote, or what its terminal shows
	Stderr buffer.Type = 0x02 // bytes that the program wrote to its standard error
	Stdin  buffer.Type = 0x03 // bytes that were typed or piped in
	Resize buffer.Type = 0x04 // the Size of a client's terminal; from the holder, the Sizing of the output that follows
	Signal buffer.Type = 0x05 // the name of a signal for the program, without SIG (RFC 4254, 6.10)
	EOF    buffer.Type = 0x06 // a Stream that its writer has ended
	Closed buffer.Type = 0x07 // a Stream that its reader has closed
	Exit   buffer.Type = 0x08 // the ExitStatus of the program; all its output is before this
	Skip   buffer.Type = 0x09 // asks the holder to drop the output that it has not sent yet
	Take   buffer.Type = 0x0a // the Size of a client's terminal, which the session is to have from now on

	EntryFrame   buffer.Type = 0x0b // an [Entry]: what a program types
	EnteredFrame buffer.Type = 0x0c // an [Entered], from the holder: what has come of an Entry
	// Happened is an Event. The log of a session's events has these and an Exit.
	Happened    buffer.Type = 0x0d
	TypistFrame buffer.Type = 0x0e // a [Typist], from the holder
)

// A Stream is one of a program's standard streams, as the payload of EOF and
// Closed frames.
type Stream byte

// The standard streams.
const (
	StreamStdin  Stream = 0
	StreamStdout Stream = 1
	StreamStderr Stream = 2
)

// ParseStream decodes the payload of an EOF or Closed frame. Bytes after the
// first are ignored.
func ParseStream(b []byte) (Stream, error) {
	if len(b) < 1 || b[0] > byte(StreamStderr) {
		return 0, fmt.Errorf("no such stream: %x", b)
	}
	return Stream(b[0]), nil
}

// A Size is that of a terminal, in character cells and pixels. Pixels are 0 if they are
// not known. In CBOR it is an array of the four numbers.
type Size struct {
	_ struct{} `cbor:",toarray"`

	Cols, Rows     uint16
	XPixel, YPixel uint16
}

// Append appends the payload of a Resize frame to b.
func (s Size) Append(b []byte) []byte {
	for _, v := range []uint16{s.Cols, s.Rows, s.XPixel, s.YPixel} {
		b = binary.BigEndian.AppendUint16(b, v)
	}
	return b
}

// ParseSize decodes a Size, the payload of a client's Resize frame. Bytes after it are ignored.
func ParseSize(b []byte) (Size, error) {
	if len(b) < 8 {
		return Size{}, errors.New("terminal size truncated")
	}
	u16 := func(i int) uint16 { return binary.BigEndian.Uint16(b[i:]) }
	return Size{Cols: u16(0), Rows: u16(2), XPixel: u16(4), YPixel: u16(6)}, nil
}

// A Sizing is the size of a session's terminal, and which client's terminal gives it: the owner of the size.
type Sizing struct {
	Size
	Owner  uint64 // the client's number in the session
	Client string // the owner, as account@address; empty if it has not come yet
}

// MaxSizing is the size of the longest encoded Sizing, in bytes.
const MaxSizing = 8 + 8 + 1 + MaxClient

// Append appends the payload of a holder's Resize frame to b.
func (s Sizing) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(s.Size.Append(b), s.Owner)
	client := s.Client[:min(len(s.Client), MaxClient)]
	return append(append(b, byte(len(client))), client...)
}

// ParseSizing decodes a Sizing, and returns what is behind it. The client is [Printable].
func ParseSizing(b []byte) (s Sizing, rest []byte, err error) {
	if s.Size, err = ParseSize(b); err != nil {
		return s, nil, err
	}
	if len(b) < 17 || len(b) < 17+int(b[16]) {
		return s, nil, errors.New("owner of the terminal's size truncated")
	}
	client, rest := b[17:17+int(b[16])], b[17+int(b[16]):]
	s.Owner, s.Client = binary.BigEndian.Uint64(b[8:]), Printable(string(client), MaxClient)
	return s, rest, nil
}

// A Snapshot takes the place of frames of a terminal's output in a gap: what a terminal of that
// size that was just reset needs to show the same.
type Snapshot struct {
	Sizing Sizing
	Screen []byte
}

// Append appends the encoding of a snapshot to b.
func (s Snapshot) Append(b []byte) []byte { return append(s.Sizing.Append(b), s.Screen...) }

// ParseSnapshot decodes a snapshot, whose Screen is part of b.
func ParseSnapshot(b []byte) (s Snapshot, err error) {
	s.Sizing, s.Screen, err = ParseSizing(b)
	return s, err
}

// The codes of notices.
const (
	// NoticeDisplaced: another client has become the writer; the text names it.
	// Nothing follows it.
	NoticeDisplaced byte = 1
	// NoticeLeaving: the client ends and will not resume.
	NoticeLeaving byte = 2
	// NoticeReaderGone: the client's reader of one of the program's streams is gone;
	// the text is one byte, the Stream. A Closed frame could wait behind input that
	// the program does not read.
	NoticeReaderGone byte = 3
	// NoticeJoined: another client of the session shares or watches it, or does so already
	// when the carrier begins. NoticeLeft: it has left. The text is a Presence.
	NoticeJoined byte = 4
	NoticeLeft   byte = 5
	// NoticeEnding: an operator ends the session; the text says who, and behind ": " why.
	NoticeEnding byte = 6
	// NoticeRenamed: the text is the name that the session has now.
	NoticeRenamed byte = 7
	// NoticeEnded: to a writer that was away: a command has ended meanwhile. The text is an Ended.
	NoticeEnded byte = 8
	// NoticeAppeared: to a client that gets events: another session was started that it may see.
	NoticeAppeared byte = 9
	// NoticeWaits: to a client whose Attach has Notify: the program waits for input.
	NoticeWaits byte = 10
	// NoticePorts: to a writer that may forward: at which ports processes of the session listen, as of PortsText.
	NoticePorts byte = 12
	// NoticeFile: to the client at the keyboard: a file is offered. The text is an OfferFile.
	NoticeFile byte = 13
)

// PortsText returns the text of NoticePorts.
func PortsText(ports []uint16) string { return strings.Trim(fmt.Sprint(ports), "[]") }

// ParsePorts is the inverse of PortsText. It skips fields that are not ports.
func ParsePorts(text string) (ports []uint16) {
	for _, field := range strings.Fields(text) {
		if n, err := strconv.ParseUint(field, 10, 16); err == nil && n > 0 {
			ports = append(ports, uint16(n))
		}
	}
	return ports
}

// A Presence names another client of a session, as the text of NoticeJoined and NoticeLeft.
type Presence struct {
	Number uint64 // of the client in the session: the same notice may come more than once
	Role   Role
	Client string // account@address
}

// String returns the text of a notice.
func (p Presence) String() string { return fmt.Sprintf("%d %d %s", p.Number, p.Role, p.Client) }

// ParsePresence is the inverse of String. The client is [Printable].
func ParsePresence(text string) (p Presence, err error) {
	number, rest, _ := strings.Cut(text, " ")
	role, client, found := strings.Cut(rest, " ")
	if !found {
		return p, fmt.Errorf("no presence: %q", text)
	}
	if p.Number, err = strconv.ParseUint(number, 10, 64); err != nil {
		return p, err
	}
	r, err := strconv.ParseUint(role, 10, 8)
	p.Role, p.Client = Role(r), Printable(client, MaxClient)
	return p, err
}
