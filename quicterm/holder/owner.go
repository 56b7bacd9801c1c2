//go:build linux || darwin

package holder

import (
	"slices"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// An ownership says which writer's terminal gives the session its size. It is pure: the time and the
// writers are inputs.
//
// A writer takes the size by an attach, unless that shares the session, or by asking for it (take). The
// owner keeps it until it stops being a writer, gives it back (a size without columns or rows is none), or is away
// for ownerGrace while another writer is connected (settle). The owner before it comes first then, and after it
// the writer that came last. If both were away, as when the server had no network, the one that comes back first
// waits that long for the owner. An owner that comes back later does not get it back by itself.
type ownership struct {
	owner  uint64 // the client's number in the session; at first the one that it was made for, which is 1
	size   wire.Size
	lender uint64 // the owner from which this one took it

	shared bool      // there is more than one writer
	again  time.Time // when it is settled once more
}

// A sizer is a writer, as an ownership sees it.
type sizer struct {
	number    uint64
	size      wire.Size // of its terminal
	connected bool
	away      time.Time // since when it has had no carrier, or is silent and owes an ack; or zero
	back      time.Time // when it came back from being without a carrier, or zero
}

// gone reports whether a writer has been away for long.
func (w *sizer) gone(now time.Time) bool { return !w.away.IsZero() && now.Sub(w.away) >= ownerGrace }

func (o *ownership) take(number uint64) {
	if number != o.owner {
		o.owner, o.lender = number, o.owner
	}
}

// sized reports whether a writer has a size: a program has no terminal, and a phone may leave the size to others.
func (w *sizer) sized() bool { return w.size.Cols > 0 && w.size.Rows > 0 }

// settle returns the owner and the size now, given the writers in the order in which they came, and when these
// may change without another event, or zero.
func (o *ownership) settle(now time.Time, writers []sizer) (next ownership, again time.Time) {
	next = *o
	if i := slices.IndexFunc(writers, func(w sizer) bool { return w.number == o.lender }); i >= 0 {
		writers = slices.Concat(writers[:i], writers[i+1:], writers[i:i+1])
	}
	owner := slices.IndexFunc(writers, func(w sizer) bool { return w.number == o.owner })
	if owner < 0 || writers[owner].gone(now) || !writers[owner].sized() {
		for i, w := range slices.Backward(writers) {
			if !w.connected || w.gone(now) || !w.sized() {
				continue
			}
			if at := w.back.Add(ownerGrace); owner >= 0 && !w.back.IsZero() && now.Before(at) {
				if again.IsZero() || at.Before(again) {
					again = at
				}
				continue
			}
			owner, again = i, time.Time{}
			break
		}
	} else if away := writers[owner].away; !away.IsZero() {
		again = away.Add(ownerGrace)
	}
	if owner >= 0 && writers[owner].sized() {
		next.owner, next.size = writers[owner].number, writers[owner].size
	}
	return next, again
}

func (h *Holder) sizingLocked() wire.Sizing {
	sizing := wire.Sizing{Size: h.ownership.size, Owner: h.ownership.owner}
	if owner := h.clients.numbered(sizing.Owner); owner != nil {
		sizing.Client = owner.client
	}
	return sizing
}
