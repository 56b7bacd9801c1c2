package wire

import (
	"encoding/binary"
	"time"
)

const (
	// maxReason is how many bytes of an exit's reason are sent and read: a few lines on a terminal.
	maxReason = 256

	// MaxExit is the size of the longest payload of an Exit frame.
	MaxExit = 1 + 8 + maxReason
)

// An ExitStatus tells how a program ended, as the payload of an Exit frame.
type ExitStatus struct {
	Status byte // 128 and the signal's number if a signal killed the program
	// Reason tells what ended a program that did not end by itself, in printable text that follows "the session was":
	// "ended by detached_ttl (1h)", "killed by ann@192.0.2.7", "killed by SIGSEGV". Otherwise it is empty.
	Reason string
	At     time.Time // when the reason applied, in whole seconds; zero without a reason
}

// Append appends the payload of an Exit frame to b.
func (e ExitStatus) Append(b []byte) []byte {
	b = append(b, e.Status)
	if e.Reason == "" {
		return b
	}
	b = binary.BigEndian.AppendUint64(b, uint64(e.At.Unix()))
	return append(b, e.Reason[:min(len(e.Reason), maxReason)]...)
}

// ParseExitStatus decodes the payload of an Exit frame. Without a status, that is
// 255. The reason is [Printable].
func ParseExitStatus(b []byte) ExitStatus {
	if len(b) == 0 {
		return ExitStatus{Status: 255}
	}
	e := ExitStatus{Status: b[0]}
	if b = b[1:]; len(b) <= 8 {
		return e
	}
	e.Reason = Printable(string(b[8:]), maxReason)
	if e.Reason != "" {
		e.At = time.Unix(int64(binary.BigEndian.Uint64(b)), 0)
	}
	return e
}
