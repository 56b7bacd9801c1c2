package session

import (
	"cmp"
	"slices"
	"time"
)

const (
	// MaxAhead is how many frames after the next one a receiver accepts on streams: those of the
	// usual flow-control window, 4 MiB, as a terminal is read on Linux, 4 KiB at a time.
	MaxAhead = 1024

	// MaxEarly is the same in datagrams, which carry tails of a few frames only.
	MaxEarly = 100

	// minBulk is how many unsent bytes at least go on bulk carriers. Fewer are keys and their echo, or the prompt after
	// a flood.
	minBulk = 1 << 10
)

// Bulk makes a carrier that has just begun one for bulk data alone: beside the carrier that carries the whole log, and
// was there before it, its stream carries all frames of which there are many.
func (e *Endpoint) Bulk(id CarrierID) {
	if c := e.carriers[id]; c != nil {
		e.becomeBulk(c)
		c.roleDue = true
	}
}

// becomeBulk makes a carrier one for bulk data. It begins with the window that its path has shown, initialCwnd at most,
// which it shares with those that are there: the carrier that it is beside goes on meanwhile.
func (e *Endpoint) becomeBulk(c *carrier) {
	sharing := 1
	for _, b := range e.carriers {
		if b.role == roleBulk {
			sharing++
		}
	}
	c.role, c.cwnd.prompt = roleBulk, true
	c.cwnd.initial = max(minCwnd, min(initialCwnd, e.lastPath.sendWindow)/sharing)
}

// whole returns the only carrier that carries the whole log. While there are others, as in a move, it is nil.
func (e *Endpoint) whole() (whole *carrier) {
	for _, c := range e.carriers {
		if c.role != roleWhole || !c.ready {
			continue
		}
		if whole != nil {
			return nil
		}
		whole = c
	}
	return whole
}

// source returns the carrier whose frames c sends: itself or, for a bulk carrier, the one beside it, or nil. They
// share its cursor, so each frame goes on one of them.
func (e *Endpoint) source(c *carrier) *carrier {
	if c.role != roleBulk {
		return c
	}
	if w := e.whole(); w != nil && w.id < c.id {
		return w
	}
	return nil
}

// hasBulk reports whether bulk carriers send what is much on a carrier: from when their windows together were as large
// as its own. Until then it goes on itself, as TCP begins slowly.
func (e *Endpoint) hasBulk(c *carrier) bool {
	for _, b := range e.carriers {
		if b.out.relieves && b.role == roleBulk && e.source(b) == c {
			return true
		}
	}
	return false
}

// noteRelief records whether bulk carriers have become as fast as the carrier that they are beside.
func (e *Endpoint) noteRelief(b *carrier) {
	w := e.source(b)
	if w == b || w == nil || b.out.relieves {
		return
	}
	sum := 0
	for _, other := range e.carriers {
		if other.role == roleBulk && other.ready && e.source(other) == w {
			sum += other.cwnd.target()
		}
	}
	b.out.relieves = sum >= w.cwnd.target()
}

// nextOnStream returns the next frames for a carrier's stream, from one up to another, which may have been skipped.
// They are none if both are the same.
func (e *Endpoint) nextOnStream(c *carrier) (from, to uint64) {
	w := e.source(c)
	if w == nil {
		return 0, 0
	}
	from, to = max(w.out.cursor, e.acked), e.log.Next()
	if len(w.out.missed) > 0 {
		from, to = w.out.missed[0].from, w.out.missed[0].to
	}
	isGap := from < e.First() || w.gap != nil // only the whole carrier sends it
	isBulk := !isGap && e.span(from, e.log.Next()) > minBulk
	if from >= to || c != w && !isBulk || c == w && isBulk && e.hasBulk(c) {
		return from, from
	}
	return from, to
}

// sent moves the cursor of the frames that a carrier sends behind those from one up to another.
func (w *carrier) sent(to uint64) {
	if len(w.out.missed) == 0 {
		w.out.cursor = to
		return
	}
	if w.out.missed[0].from = to; to >= w.out.missed[0].to {
		w.out.missed = w.out.missed[1:]
	}
}

// endOfAhead returns the first frame that is too far ahead for a stream. Without bulk carriers a stream is in order, so
// that its frames are never early.
func (e *Endpoint) endOfAhead() uint64 {
	for _, c := range e.carriers {
		if c.role == roleBulk {
			return e.acked + MaxAhead
		}
	}
	return maxNumber
}

// deadAt returns when a bulk carrier counts as dead unless it delivers something, or zero: others are heard meanwhile.
func (e *Endpoint) deadAt(c *carrier) time.Time {
	if c.role != roleBulk || len(c.out.flight) == 0 {
		return time.Time{}
	}
	silence := max(minDead, 4*c.rtt.smoothed)
	for _, other := range e.carriers {
		if other != c && other.heardAt.Sub(c.out.progressAt) > silence/2 {
			return c.out.progressAt.Add(silence)
		}
	}
	return time.Time{}
}

// deathTime returns when the first bulk carrier counts as dead, or zero. The carrier that they are beside asks.
func (e *Endpoint) deathTime(c *carrier) (at time.Time) {
	if c.role == roleWhole && c.ready {
		for _, b := range e.carriers {
			at = earlier(at, e.deadAt(b))
		}
	}
	return at
}

// bury gives what is on its way on dead carriers to others.
func (e *Endpoint) bury(now time.Time) {
	for _, c := range e.carriers {
		if due(now, e.deadAt(c)) {
			e.abandon(c)
			c.role, c.ready = roleDead, false
		}
	}
}

// Dead reports whether a carrier, for bulk data, delivers nothing while others do. The owner closes it.
func (e *Endpoint) Dead(id CarrierID) bool {
	c := e.carriers[id]
	return c != nil && c.role == roleDead
}

// abandon gives what is on its way on a bulk carrier to the carriers that it was beside.
func (e *Endpoint) abandon(b *carrier) {
	for _, c := range e.carriers {
		if b.role == roleBulk && c.role != roleBulk && c.id < b.id {
			c.out.missed = joined(append(c.out.missed, b.out.flight...))
		}
	}
	b.out.flight = nil
}

// joined sorts runs, and joins those that meet or overlap: bulk carriers that come and go without end miss the same
// frames again and again, for a carrier that sends none.
func joined(runs []run) []run {
	slices.SortFunc(runs, func(a, b run) int { return cmp.Compare(a.from, b.from) })
	out := runs[:0]
	for _, r := range runs {
		if n := len(out); n > 0 && r.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, r.to)
			continue
		}
		out = append(out, r)
	}
	return out
}
