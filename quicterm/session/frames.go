package session

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/quicterm/quicterm/buffer"
)

// Unsequenced is the first type of the transport's own frames. Frames of types below it
// belong to a log: receivers deliver all of them and know none. Frames of the types from
// it on have sequence number 0 and concern one carrier; receivers ignore unknown types.
const (
	Unsequenced buffer.Type = 0x80

	ack    buffer.Type = 0x80 // an ackInfo
	ping   buffer.Type = 0x81 // its first byte is one of the values below, or missing: then it is 0
	notice buffer.Type = 0x82 // a Notice
	gap    buffer.Type = 0x83 // a gapInfo, in place of frames that will never come

	// Package driver sends and handles this one.

	Compressed buffer.Type = 0x85 // whole frames, compressed

	aged buffer.Type = 0x86 // the first frame of the log that is not old

	snapshotPart buffer.Type = 0x87 // part of what the next gap on the stream has in place of frames

	role buffer.Type = 0x88 // its first byte is one of the values below
)

// What the first byte of a ping means. Others are taken for a probe.
const (
	pingPlain byte = 0 // nothing
	pingProbe byte = 1 // it asks for an ack

	// pingObscured asks for an ack too, in a packet that is as long as any (obscure.go).
	pingObscured byte = 2
)

// The roles of a carrier. The first byte of a role frame, on the carrier's stream, is roleStandBy or roleBulk; others
// are ignored.
const (
	roleWhole   byte = 0 // it carries the whole log
	roleStandBy byte = 1 // it stands by until its receiver has an ack on it
	roleBulk    byte = 2 // it carries bulk data only
	roleDead    byte = 3 // it did, and is to be closed
)

// pingBytes is the payload of a ping that this implementation sends: a flag and padding. A
// server that does not know the connection answers with a stateless reset only if the packet
// is longer than 42 bytes (RFC 9000, 10.3); with this payload it has 45 or more, in the short form too.
const pingBytes = 16

// A Notice is a message to the owner of the peer, outside the logs.
type Notice struct {
	Code byte // package wire defines the codes
	Text string
}

// maxNotice is the longest text of a notice, in bytes: a line.
const maxNotice = 256

func parseNotice(b []byte) (Notice, error) {
	if len(b) < 1 || len(b) > 1+maxNotice {
		return Notice{}, fmt.Errorf("notice of %d bytes", len(b))
	}
	return Notice{b[0], string(b[1:])}, nil
}

// appendNotice appends the payload of a notice to b, with at most maxNotice bytes of the text.
func appendNotice(b []byte, code byte, text string) []byte {
	return append(append(b, code), text[:min(len(text), maxNotice)]...)
}

// An ackInfo says what the sender of an ack has of the other end's log.
type ackInfo struct {
	received  uint64        // the first frame that it has not received
	consumed  uint64        // the first frame that it has not consumed, at most received
	windowEnd uint64        // the end of its flow-control window, as a position in the log
	highest   uint64        // the highest frame that it has received on this carrier, 0 for none
	delay     time.Duration // for how long it has had highest
	datagrams uint64        // that it has received on this carrier, 0 if it does not count them
	backlog   uint64        // bytes of frames of its own log that it has not sent on this carrier
	limited   bool          // frames of that have waited for long
}

// maxAckBytes is the longest payload of an ack without a note.
const maxAckBytes = 1 + ackFields*binary.MaxVarintLen64

// MaxNote is the longest note, in bytes. Datagrams keep it free.
const MaxNote = 44

// A gapInfo says where a log continues after frames that will never come.
type gapInfo struct {
	next   uint64 // the frame that comes next
	offset uint64 // its offset in the log: the receiver computes how many bytes it misses

	snapshot uint64 // bytes of the snapshot before it on the stream, 0 for none
}

// appendGap appends the payload of a gap to b: two varints, and a third if it has a snapshot.
func appendGap(b []byte, g gapInfo) []byte {
	b = binary.AppendUvarint(b, g.next)
	b = binary.AppendUvarint(b, g.offset)
	if g.snapshot > 0 {
		b = binary.AppendUvarint(b, g.snapshot)
	}
	return b
}

// parseGap decodes the payload of a gap. Bytes after it are ignored.
func parseGap(b []byte) (gapInfo, error) {
	var v [3]uint64
	rest, err := uvarints(v[:2], b)
	if err == nil && len(rest) > 0 {
		_, err = uvarints(v[2:], rest)
	}
	if err != nil {
		return gapInfo{}, fmt.Errorf("gap: %w", err)
	}
	return gapInfo{next: v[0], offset: v[1], snapshot: v[2]}, nil
}

// uvarints decodes as many varints from the start of b as values has elements, and returns what is behind them.
func uvarints(values []uint64, b []byte) (rest []byte, err error) {
	for i := range values {
		v, size := binary.Uvarint(b)
		if size <= 0 {
			return nil, fmt.Errorf("bad varint in %x", b)
		}
		values[i], b = v, b[size:]
	}
	return b, nil
}
