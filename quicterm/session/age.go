package session

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/quicterm/quicterm/buffer"
)

// maxAgedBytes is the size of an Aged frame.
const maxAgedBytes = buffer.Overhead + binary.MaxVarintLen64

// An age says that the frames before one were appended at a time or earlier.
type age struct {
	at   time.Time
	next uint64
}

// ages records when the frames of a log were appended, for agedAfter.
type ages struct {
	list  []age     // oldest first
	begun time.Time // when the last of list was added
}

// appended records that the frames before next are in the log now.
func (a *ages) appended(now time.Time, next uint64) {
	if n := len(a.list); n > 0 && now.Sub(a.begun) < ageStep {
		a.list[n-1] = age{now, next}
		return
	}
	a.aged(now) // forgets old ones
	a.list, a.begun = append(a.list, age{now, next}), now
}

// aged returns the first frame that is not older than agedAfter, or 0 if none is older.
func (a *ages) aged(now time.Time) uint64 {
	old := 0
	for old < len(a.list) && now.Sub(a.list[old].at) > agedAfter {
		old++
	}
	if old == 0 {
		return 0
	}
	a.list = a.list[old-1:] // the last old one is kept
	return a.list[0].next
}

// agedFrom returns what to tell the peer before it gets the frames from one on: the first
// frame that is not old, or 0 if none of these is.
func (e *Endpoint) agedFrom(now time.Time, from uint64) uint64 {
	if e.ages == nil {
		return 0
	}
	if next := e.ages.aged(now); next > from {
		return next
	}
	return 0
}

func appendAged(b []byte, next uint64) []byte {
	return buffer.AppendFrame(b, buffer.Frame{Type: aged, Payload: binary.AppendUvarint(nil, next)})
}

// parseAged decodes the payload of an Aged frame. Bytes after it are ignored.
func parseAged(b []byte) (uint64, error) {
	next, n := binary.Uvarint(b)
	if n <= 0 || next > maxNumber {
		return 0, errors.New("aged frame makes no sense")
	}
	return next, nil
}

// Aged returns the first frame of the peer's log that may be new: when the frames before it
// were sent, they were old, as after an outage.
func (e *Endpoint) Aged() uint64 { return e.peerAged }
