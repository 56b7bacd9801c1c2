//go:build linux || darwin

package holder

import (
	"bytes"
	"iter"
	"slices"
	"time"

	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Hints tell the writers how their terminal shows keys, with the acks that they get (SPEC.md, 7.9).
// The modes are looked up when an ack is made. So what hintLoop adds are acks that nothing else
// would send: it sleeps while a key is followed by its echo.
const (
	// effectTime is how long a program has for the effect of input. A hint does not count input
	// that is younger. changeTime takes its place for settledAfter after a change of the modes: a
	// program that starts does not read yet.
	effectTime   = 30 * time.Millisecond
	changeTime   = 50 * time.Millisecond
	settledAfter = time.Second

	// silentTime is how long the terminal must be silent before its modes are looked up: a
	// program may turn the echo off just after it has asked for a password. A program may start
	// slowly too: except after plain keys, they are looked up again after four times as long, up
	// to maxSilentTime.
	silentTime    = 5 * time.Millisecond
	maxSilentTime = 1280 * time.Millisecond

	// echoTime is how long after input output counts as the answer to it.
	echoTime = 100 * time.Millisecond

	// givenStep is how exactly the time of input is recorded.
	givenStep = 5 * time.Millisecond
)

// modes are what the kernel knows of the terminal.
type modes struct {
	flags   wire.TerminalFlags
	context uint16
}

// hints are what the hints to all writers have in common. The gate guards them.
type hints struct {
	modes     modes
	changedAt time.Time     // of the modes
	silentAt  time.Time     // when to look them up because of silence, or zero
	silence   time.Duration // that silentAt awaits
	plain     bool          // the last input was plain keys
	givenAt   time.Time     // when that was given
	effectAt  time.Time     // when input counts that is not plain keys, or to which nothing was printed; or zero
	timer     *time.Timer   // fires at the earlier one
}

// hinting is what one writer is told.
type hinting struct {
	number    uint64 // of the last hint
	last      wire.Hint
	effective uint64  // the last frame of input that the next hint counts
	given     []given // and those after it, oldest first
	buf       [session.MaxNote]byte
}

// A given is some input, the last frame of which the program was given at a time.
type given struct {
	frame uint64
	began time.Time // when it was given the first
	at    time.Time
}

// maxGiven is more input than is younger than changeTime.
const maxGiven = 2 * int(changeTime/givenStep)

func newHints() hints {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return hints{timer: timer}
}

// hintLoop sends hints until the session is over.
func (h *Holder) hintLoop() {
	defer h.hints.timer.Stop()
	for {
		select {
		case <-h.end:
			return
		case <-h.hints.timer.C:
			h.gate.Lock()
			h.hintLocked(time.Now())
			h.gate.Unlock()
		}
	}
}

// hintLocked sends the hints that are due.
func (h *Holder) hintLocked(now time.Time) {
	silent, effect := due(now, &h.hints.silentAt), due(now, &h.hints.effectAt)
	if (silent || effect) && h.lookLocked(now) {
		for w := range h.clients.hinted() {
			last := w.hinting.last
			if silent && h.hints.modes != (modes{last.Terminal, last.Context}) ||
				effect && !h.hints.modes.flags.Secret() && h.effectiveLocked(now, w) > last.In {
				w.endpoint.AckNow(now)
				w.driver.Wake()
			}
		}
	}
	if silent && !h.hints.plain && h.hints.silence < maxSilentTime {
		h.hints.silence *= 4
		h.hints.silentAt = now.Add(h.hints.silence)
	}
	h.awaitHintLocked(now)
}

// due reports whether a time has come, and if so makes it zero.
func due(now time.Time, at *time.Time) bool {
	if at.IsZero() || now.Before(*at) {
		return false
	}
	*at = time.Time{}
	return true
}

// awaitSilenceLocked records that the terminal is not silent.
func (h *Holder) awaitSilenceLocked(now time.Time) {
	h.hints.silence = silentTime
	h.hints.silentAt = now.Add(silentTime)
}

// awaitHintLocked sets the timer.
func (h *Holder) awaitHintLocked(now time.Time) {
	at := h.hints.silentAt
	if e := h.hints.effectAt; at.IsZero() || !e.IsZero() && e.Before(at) {
		at = e
	}
	if at.IsZero() {
		h.hints.timer.Stop()
	} else {
		h.hints.timer.Reset(at.Sub(now))
	}
}

// hinted returns the writers that are connected and get hints.
func (s *clients) hinted() iter.Seq[*attachment] {
	return func(yield func(*attachment) bool) {
		for w := range s.writers() {
			if w.hinting != nil && w.connected() && !yield(w) {
				return
			}
		}
	}
}

func (s *clients) wantHints() bool {
	for range s.hinted() {
		return true
	}
	return false
}

// lookLaterLocked looks the modes up when the terminal is silent, which it is not now.
func (h *Holder) lookLaterLocked(now time.Time) {
	if !h.clients.wantHints() {
		return
	}
	h.hints.plain = h.hints.plain && now.Sub(h.hints.givenAt) < echoTime
	if h.hints.plain {
		h.hints.effectAt = time.Time{} // the hint with the next key's echo will do
	}
	h.awaitSilenceLocked(now)
	h.awaitHintLocked(now)
}

// gaveLocked records that the program has got some input of a writer. The output had ended
// before a frame when it was given.
func (h *Holder) gaveLocked(now time.Time, w *attachment, d session.Delivered, output uint64) {
	if w.hinting == nil {
		return
	}
	w.hinting.gave(now, d.After()-1)
	h.hints.plain, h.hints.givenAt = plain(d.Payload), now
	if !h.hints.plain {
		h.awaitSilenceLocked(now)
	}
	if !h.hints.plain || output == h.ring.Next() {
		h.hints.effectAt = now.Add(h.effectTimeLocked(now))
	}
	h.awaitHintLocked(now)
}

// plain reports whether input is keys that start no program.
func plain(b []byte) bool {
	return !bytes.ContainsFunc(b, func(r rune) bool { return r < ' ' })
}

func (t *hinting) gave(now time.Time, frame uint64) {
	if n := len(t.given); n > 0 && now.Sub(t.given[n-1].began) < givenStep {
		t.given[n-1].frame, t.given[n-1].at = frame, now
		return
	}
	if len(t.given) == maxGiven {
		t.given = slices.Delete(t.given, 0, 1)
	}
	t.given = append(t.given, given{frame, now, now})
}

func (h *Holder) effectTimeLocked(now time.Time) time.Duration {
	if now.Sub(h.hints.changedAt) < settledAfter {
		return changeTime
	}
	return effectTime
}

// effectiveLocked returns the last frame of a writer's input that the program has had for long
// enough, if all that it has printed is in the log. Otherwise it is as before.
func (h *Holder) effectiveLocked(now time.Time, w *attachment) uint64 {
	t := w.hinting
	before := now.Add(-h.effectTimeLocked(now))
	n := 0
	for n < len(t.given) && !t.given[n].at.After(before) {
		n++
	}
	if n > 0 && h.program.Drained(h.reading.bytes) {
		t.effective = t.given[n-1].frame
		t.given = slices.Delete(t.given, 0, n)
	}
	return t.effective
}

// lookLocked looks the modes of the terminal up.
func (h *Holder) lookLocked(now time.Time) (ok bool) {
	flags, context, ok := h.program.Modes(now)
	if m := (modes{flags, context}); ok && m != h.hints.modes {
		h.hints.modes, h.hints.changedAt = m, now
	}
	return ok
}

// noteLocked returns the hint for an ack to a writer.
func (h *Holder) noteLocked(now time.Time, a *attachment) []byte {
	t := a.hinting
	if !a.role.writes() || !h.lookLocked(now) {
		return nil
	}
	hint := wire.Hint{
		Out:      h.ring.Next() - 1,
		In:       h.effectiveLocked(now, a),
		Terminal: h.hints.modes.flags,
		Context:  h.hints.modes.context,
	}
	if t.number == 0 || hint != t.last {
		t.number, t.last = t.number+1, hint
	}
	received, _ := a.endpoint.Next()
	return hint.Append(t.buf[:0], t.number, received)
}
