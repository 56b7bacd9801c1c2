//go:build linux || darwin

package holder

import (
	"slices"
	"time"

	"github.com/quicterm/quicterm/quicterm/holder/typing"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// maxGiven bounds the input of a writer that is recorded: more than a person types within changeTime.
const maxGiven = 20

// maxRepeats is how many looks after a hint it is told last to a client that is a program.
const maxRepeats = 32

// modes are what the kernel knows of the terminal.
type modes struct {
	flags   wire.TerminalFlags
	context uint16
}

// Hints tell the writers, with their acks, how their terminal shows keys (SPEC.md, 7.9). Each ack looks the modes up.
// Where no ack would tell of a change, loop sends one; it sleeps while each key is followed by its echo. The holder's
// gate guards them.
type hints struct {
	h *Holder

	modes     modes
	changedAt time.Time     // of the modes
	silentAt  time.Time     // when to look them up because of silence, or zero
	silence   time.Duration // that silentAt awaits
	plain     bool          // the last input was plain keys
	givenAt   time.Time     // when that was given
	effectAt  time.Time     // when input counts that is not plain keys, or to which nothing was printed; or zero
	timer     *time.Timer   // fires at the earliest time of these and of progress

	progress progress
}

// hinting is what one writer is told.
type hinting struct {
	level     uint8  // the client's Attach.Hints
	number    uint64 // of the last hint
	last      wire.Hint
	effective uint64    // the last frame of input that the next hint counts
	given     []arrival // input after that, oldest first
	input     uint64    // the last frame that the program was given
	taken     uint64    // the last of these that has left the terminal's queue
	repeats   int       // looks since the hint is the last one
	buf       [session.MaxNote]byte
}

// An arrival is a frame of input and when the program got it.
type arrival struct {
	frame uint64
	at    time.Time
}

func newHints(h *Holder, now time.Time) hints {
	timer := time.NewTimer(effectTime)
	timer.Stop()
	return hints{h: h, timer: timer, progress: progress{last: now}}
}

func (t *hints) sendLocked(now time.Time) {
	silent, effect := due(now, &t.silentAt), due(now, &t.effectAt)
	if (silent || effect) && t.lookLocked(now) {
		for _, w := range t.h.clients.hinted() {
			last := w.hinting.last
			if silent && t.modes != (modes{last.Terminal, last.Context}) ||
				effect && !t.modes.flags.Secret() && t.effectiveLocked(now, w) > last.In {
				w.endpoint.AckNow(now)
				w.driver.Wake()
			}
		}
	}
	if silent && !t.plain && t.silence < maxSilentTime {
		t.silence *= 4
		t.silentAt = now.Add(t.silence)
	}
	t.awaitHintLocked(now)
}

// due reports whether a time has come, and if so makes it zero.
func due(now time.Time, at *time.Time) bool {
	if at.IsZero() || now.Before(*at) {
		return false
	}
	*at = time.Time{}
	return true
}

func (t *hints) awaitSilenceLocked(now time.Time) {
	t.silence = silentTime
	t.silentAt = now.Add(silentTime)
}

func (t *hints) awaitHintLocked(now time.Time) {
	var at time.Time
	for _, next := range []time.Time{t.silentAt, t.effectAt, t.progress.at, t.h.events.still.Next()} {
		if at.IsZero() || !next.IsZero() && next.Before(at) {
			at = next
		}
	}
	if at.IsZero() {
		t.timer.Stop()
	} else {
		t.timer.Reset(at.Sub(now))
	}
}

// hinted returns the writers that are connected and get hints.
func (s *clients) hinted() (hinted []*attachment) {
	for w := range s.writers() {
		if w.hinting != nil && w.connected() {
			hinted = append(hinted, w)
		}
	}
	return hinted
}

// lookLaterLocked looks the modes up when the terminal is silent, which it is not now.
func (t *hints) lookLaterLocked(now time.Time) {
	if len(t.h.clients.hinted()) == 0 {
		return
	}
	if p := &t.progress; !p.at.IsZero() && p.pause == progressInterval { // who has asked something reads soon
		p.pause, p.at = silentTime, now.Add(silentTime)
	}
	t.plain = t.plain && now.Sub(t.givenAt) < echoTime
	if t.plain {
		t.effectAt = time.Time{} // the hint with the next key's echo will do
	}
	t.awaitSilenceLocked(now)
	t.awaitHintLocked(now)
}

// gaveLocked records that the program has got some input of a writer. The output had ended
// before a frame when it was given.
func (t *hints) gaveLocked(now time.Time, w *attachment, d session.Delivered, output uint64) {
	if w.hinting == nil {
		return
	}
	w.hinting.input = d.After() - 1
	w.hinting.gave(now, d.After()-1)
	t.plain, t.givenAt = typing.Plain(d.Payload), now
	if !t.plain {
		t.awaitSilenceLocked(now)
	}
	if !t.plain || output == t.h.ring.Next() {
		t.effectAt = now.Add(t.effectTimeLocked(now))
	}
	t.awaitHintLocked(now)
}

func (w *hinting) gave(now time.Time, frame uint64) {
	if len(w.given) == maxGiven {
		w.given = w.given[:maxGiven-1] // the hint will count it with this frame
	}
	w.given = append(w.given, arrival{frame, now})
}

func (t *hints) effectTimeLocked(now time.Time) time.Duration {
	if now.Sub(t.changedAt) < settledAfter {
		return changeTime
	}
	return effectTime
}

// effectiveLocked returns the last frame of a writer's input that the program has had for long
// enough, if all that it has printed is in the log. Otherwise it is as before.
func (t *hints) effectiveLocked(now time.Time, w *attachment) uint64 {
	own := w.hinting
	before := now.Add(-t.effectTimeLocked(now))
	n := slices.IndexFunc(own.given, func(in arrival) bool { return in.at.After(before) })
	if n < 0 {
		n = len(own.given)
	}
	if n > 0 && t.h.program.Drained(t.h.reading.bytes) {
		own.effective = own.given[n-1].frame
		own.given = slices.Delete(own.given, 0, n)
	}
	return own.effective
}

func (t *hints) lookLocked(now time.Time) (ok bool) {
	flags, context, ok := t.h.program.Modes(now)
	if m := (modes{flags, context}); ok && m != t.modes {
		t.modes, t.changedAt = m, now
	}
	return ok
}

// noteLocked returns the hint for an ack to a writer.
func (t *hints) noteLocked(now time.Time, a *attachment) []byte {
	own := a.hinting
	if !a.role.writes() || !t.lookLocked(now) {
		return nil
	}
	hint := wire.Hint{
		Out:      t.h.ring.Next() - 1,
		In:       t.effectiveLocked(now, a),
		Terminal: t.modes.flags,
		Context:  t.modes.context,
	}
	if own.level >= wire.HintsProgram {
		hint.Reading, hint.Taken = t.progress.reads, own.taken
	}
	if own.number == 0 || hint != own.last {
		own.number, own.last, own.repeats = own.number+1, hint, 0
	}
	received, _ := a.endpoint.Next()
	return hint.Append(own.buf[:0], own.level, own.number, received)
}

// promptLocked reports whether the session's shell waits at its prompt.
func (t *hints) promptLocked() bool {
	return wire.Hint{Reading: t.progress.reads, Terminal: t.modes.flags, Context: t.modes.context}.AtPrompt()
}
