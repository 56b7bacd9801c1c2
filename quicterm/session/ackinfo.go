package session

import (
	"encoding/binary"
	"fmt"
	"time"
)

// limitedFlag is the bit of the flags of an ack that says limited.
const limitedFlag = 1 << (ackFields - 1)

// ackFields is how many fields an ack has: unsigned varints (as in Protocol Buffers, at most 10 bytes each).
const ackFields = 7

// fields returns what an ack encodes: consumed as its distance from received.
func (a ackInfo) fields() [ackFields]uint64 {
	delay := min(a.delay, maxReportedDelay).Milliseconds()
	return [...]uint64{a.received, a.received - a.consumed, a.windowEnd, a.highest, uint64(delay), a.datagrams, a.backlog}
}

// ackOf is the reverse of fields.
func ackOf(v [ackFields]uint64) (ackInfo, error) {
	if v[0] == 0 || v[1] >= v[0] {
		return ackInfo{}, fmt.Errorf("ack of nothing: received %d, unconsumed %d", v[0], v[1])
	}
	delay := time.Duration(min(v[4], uint64(maxReportedDelay.Milliseconds()))) * time.Millisecond
	return ackInfo{received: v[0], consumed: v[0] - v[1], windowEnd: v[2], highest: v[3],
		delay: delay, datagrams: v[5], backlog: v[6]}, nil
}

// usual returns the fields of an ack that has only the first: highest is the frame before it.
func usual(received uint64) [ackFields]uint64 {
	return [...]uint64{received, 0, 0, received - 1, 0, 0, 0}
}

// appendAck appends the payload of an ack to b: a byte, the first field, and those of the others that are not
// as usual. Bits of the byte say which these are.
func appendAck(b []byte, a ackInfo) []byte {
	flags := len(b)
	b = binary.AppendUvarint(append(b, 0), a.received)
	fields, usual := a.fields(), usual(a.received)
	for i := 1; i < ackFields; i++ {
		if fields[i] != usual[i] {
			b[flags] |= 1 << (i - 1)
			b = binary.AppendUvarint(b, fields[i])
		}
	}
	if a.limited {
		b[flags] |= limitedFlag
	}
	return b
}

// parseAck decodes the payload of an ack. Bytes after it are a note.
func parseAck(b []byte) (a ackInfo, note []byte, err error) {
	if len(b) == 0 {
		return ackInfo{}, nil, fmt.Errorf("ack: empty")
	}
	var v [ackFields]uint64
	flags := b[0]
	note, err = uvarints(v[:1], b[1:])
	v = usual(v[0])
	for i := 1; i < ackFields && err == nil; i++ {
		if flags&(1<<(i-1)) != 0 {
			note, err = uvarints(v[i:i+1], note)
		}
	}
	if err == nil {
		a, err = ackOf(v)
		a.limited = flags&limitedFlag != 0
	}
	if err != nil {
		return ackInfo{}, nil, fmt.Errorf("ack: %w", err)
	}
	return a, note, nil
}
