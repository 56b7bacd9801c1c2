// Package sizing decides which client gives a session its size; pure.
package sizing

import (
	"slices"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// Grace is how long the owner of the size may be away while another writer is connected: after that the size is the
// other's. Most moves take less, and a wrong size is seen.
const Grace = 5 * time.Second

// An Ownership says which writer's terminal gives the session its size.
//
// A writer takes the size by an attach, unless that shares the session, or by asking for it (Take). The
// owner keeps it until it stops being a writer, gives it back (a size without columns or rows is none), or is away
// for Grace while another writer is connected (Settle). The owner before it comes first then, and after it
// the writer that came last. If both were away, as when the server had no network, the one that comes back first
// waits that long for the owner. An owner that comes back later does not get it back by itself.
type Ownership struct {
	Owner  uint64 // the client's number in the session; at first the one that it was made for, which is 1
	Size   wire.Size
	Lender uint64 // the owner from which this one took it

	Shared bool      // there is more than one writer
	Again  time.Time // when it is settled once more
}

// A Writer is a client that may give the size.
type Writer struct {
	Number    uint64
	Size      wire.Size // of its terminal
	Connected bool
	Away      time.Time // since when it has had no carrier, or is silent and owes an ack; or zero
	Back      time.Time // when it came back from being without a carrier, or zero
}

// gone reports whether a writer has been away for long.
func (w *Writer) gone(now time.Time) bool { return !w.Away.IsZero() && now.Sub(w.Away) >= Grace }

// Take gives the size to a writer.
func (o *Ownership) Take(number uint64) {
	if number != o.Owner {
		o.Owner, o.Lender = number, o.Owner
	}
}

// sized reports whether a writer has a size: a program has no terminal, and a phone may leave the size to others.
func (w *Writer) sized() bool { return w.Size.Cols > 0 && w.Size.Rows > 0 }

// Settle returns the owner and the size now, given the writers in the order in which they came, and when these
// may change without another event, or zero.
func (o *Ownership) Settle(now time.Time, writers []Writer) (next Ownership, again time.Time) {
	next = *o
	if i := slices.IndexFunc(writers, func(w Writer) bool { return w.Number == o.Lender }); i >= 0 {
		writers = slices.Concat(writers[:i], writers[i+1:], writers[i:i+1])
	}
	owner := slices.IndexFunc(writers, func(w Writer) bool { return w.Number == o.Owner })
	if owner < 0 || writers[owner].gone(now) || !writers[owner].sized() {
		for i, w := range slices.Backward(writers) {
			if !w.Connected || w.gone(now) || !w.sized() {
				continue
			}
			if at := w.Back.Add(Grace); owner >= 0 && !w.Back.IsZero() && now.Before(at) {
				if again.IsZero() || at.Before(again) {
					again = at
				}
				continue
			}
			owner, again = i, time.Time{}
			break
		}
	} else if away := writers[owner].Away; !away.IsZero() {
		again = away.Add(Grace)
	}
	if owner >= 0 && writers[owner].sized() {
		next.Owner, next.Size = writers[owner].Number, writers[owner].Size
	}
	return next, again
}
