package session

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/quicterm/quicterm/buffer"
)

// Types of frames. Those below Unsequenced belong to a log; receivers skip
// the ones that they do not know. The others have sequence number 0 and concern
// one carrier; receivers ignore the ones that they do not know.
const (
	Stdout buffer.Type = 0x01 // bytes that the program wrote, or what its terminal shows
	Stderr buffer.Type = 0x02 // bytes that the program wrote to its standard error
	Stdin  buffer.Type = 0x03 // bytes that were typed or piped in
	Resize buffer.Type = 0x04 // a Size: the terminal has a new one
	Signal buffer.Type = 0x05 // the name of a signal for the program, without SIG (RFC 4254, 6.10)
	EOF    buffer.Type = 0x06 // a Stream: its writer is done
	Closed buffer.Type = 0x07 // a Stream: its reader is gone
	Exit   buffer.Type = 0x08 // a status byte: the program has ended, all its output is before this
	Skip   buffer.Type = 0x09 // asks for the present: what was printed before is not to be sent

	Unsequenced buffer.Type = 0x80

	ack    buffer.Type = 0x80 // an Ack
	ping   buffer.Type = 0x81 // its first byte tells whether an ack is wanted
	notice buffer.Type = 0x82 // a NoticeCode and text for the person
	gap    buffer.Type = 0x83 // stands in place of frames that have left the ring

	// Those that follow are for who moves a peer's frames; see package pump.

	Compression buffer.Type = 0x84 // its sender takes Compressed frames; a byte tells when it wants them
	Compressed  buffer.Type = 0x85 // whole frames, compressed
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

// A Size is that of a terminal, in character cells and, where known, pixels.
type Size struct {
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

// ParseSize decodes the payload of a Resize frame. Bytes after it are ignored.
func ParseSize(b []byte) (Size, error) {
	if len(b) < 8 {
		return Size{}, errors.New("terminal size truncated")
	}
	u16 := func(i int) uint16 { return binary.BigEndian.Uint16(b[i:]) }
	return Size{Cols: u16(0), Rows: u16(2), XPixel: u16(4), YPixel: u16(6)}, nil
}

// A NoticeCode tells what a notice is about.
type NoticeCode byte

const (
	// Displaced: another client has taken the session over; the text says
	// who. Nothing follows it.
	Displaced NoticeCode = 1
	// Leaving: the client goes and will not resume.
	Leaving NoticeCode = 2
	// ReaderGone: nobody reads one of the program's streams any more; the text
	// is one byte, the Stream. It is no frame of the log, where it might wait
	// behind input that the program does not read.
	ReaderGone NoticeCode = 3
)

// A Notice is a message from one end to the person or program at the other,
// outside the logs.
type Notice struct {
	Code NoticeCode
	Text string
}

// maxNotice is the longest text of a notice, in bytes: a line.
const maxNotice = 256

// parseNotice decodes the payload of a notice.
func parseNotice(b []byte) (Notice, error) {
	if len(b) < 1 || len(b) > 1+maxNotice {
		return Notice{}, fmt.Errorf("notice of %d bytes", len(b))
	}
	return Notice{NoticeCode(b[0]), string(b[1:])}, nil
}

// appendNotice appends the payload of a notice to b, cutting the text
// where it is too long for a notice.
func appendNotice(b []byte, code NoticeCode, text string) []byte {
	return append(append(b, byte(code)), text[:min(len(text), maxNotice)]...)
}

// An Ack says what its sender has of the other end's log.
type Ack struct {
	Received uint64 // the first frame that it has not received
	Consumed uint64 // the first frame that it has not dealt with, at most Received
	Limit    uint64 // where in the log, in bytes of encoded frames, it can hold no more
	Highest  uint64 // the highest frame that it has received on this carrier, 0 for none
	// Delay is how long it has had Highest.
	Delay time.Duration
	// Datagrams is how many it has received on this carrier, 0 if it does not say.
	Datagrams uint64
	// Backlog is how many bytes of frames of its own log it has yet to send on
	// this carrier.
	Backlog uint64
}

// appendAck appends the payload of an ack to b: seven unsigned varints (as in
// Protocol Buffers, at most 10 bytes each), Consumed as its distance from
// Received.
func appendAck(b []byte, a Ack) []byte {
	b = binary.AppendUvarint(b, a.Received)
	b = binary.AppendUvarint(b, a.Received-a.Consumed)
	b = binary.AppendUvarint(b, a.Limit)
	b = binary.AppendUvarint(b, a.Highest)
	b = binary.AppendUvarint(b, uint64(min(a.Delay, maxAckDelay)/time.Millisecond))
	b = binary.AppendUvarint(b, a.Datagrams)
	return binary.AppendUvarint(b, a.Backlog)
}

// maxAckDelay is the longest delay that is told: nothing is timed for longer.
const maxAckDelay = 10 * time.Second

// maxAckBytes is the longest payload of an ack.
const maxAckBytes = 7 * binary.MaxVarintLen64

// parseAck decodes the payload of an ack. Bytes after it are ignored.
func parseAck(b []byte) (Ack, error) {
	v, err := uvarints(b, 7)
	if err != nil {
		return Ack{}, fmt.Errorf("ack: %w", err)
	}
	if v[0] == 0 || v[1] >= v[0] {
		return Ack{}, fmt.Errorf("ack of nothing: received %d, unconsumed %d", v[0], v[1])
	}
	return Ack{Received: v[0], Consumed: v[0] - v[1], Limit: v[2], Highest: v[3],
		Delay: time.Duration(min(v[4], uint64(maxAckDelay/time.Millisecond))) * time.Millisecond, Datagrams: v[5], Backlog: v[6]}, nil
}

// A gapInfo says where a log goes on after frames that have left the ring.
type gapInfo struct {
	next   uint64 // the frame that comes next
	offset uint64 // its offset in the log: tells the receiver how many bytes it misses
}

func appendGap(b []byte, g gapInfo) []byte {
	b = binary.AppendUvarint(b, g.next)
	return binary.AppendUvarint(b, g.offset)
}

// parseGap decodes the payload of a gap. Bytes after it are ignored.
func parseGap(b []byte) (gapInfo, error) {
	v, err := uvarints(b, 2)
	if err != nil {
		return gapInfo{}, fmt.Errorf("gap: %w", err)
	}
	return gapInfo{next: v[0], offset: v[1]}, nil
}

// uvarints decodes n varints from the start of b.
func uvarints(b []byte, n int) ([]uint64, error) {
	values := make([]uint64, n)
	for i := range values {
		v, size := binary.Uvarint(b)
		if size <= 0 {
			return nil, fmt.Errorf("bad varint in %x", b)
		}
		values[i], b = v, b[size:]
	}
	return values, nil
}
