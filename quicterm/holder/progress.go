//go:build linux || darwin

package holder

import (
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// Progress is what the program does with its input, for the clients that are programs too. The holder looks each
// progressInterval while there is such a client.
type progress struct {
	at     time.Time     // when to look, or zero
	pause  time.Duration // behind the look then
	fresh  bool          // nothing has happened since the last look, for what programs type
	events uint64        // how often input was given or output came
	last   time.Time     // when that was last
	giving bool          // input is being given to the program
	queued bool          // some may be in the terminal's queue
	reads  bool          // the program waits for input, and nothing has happened since that was looked up
}

func (t *hints) loop(end <-chan struct{}) {
	defer t.timer.Stop()
	t.h.gate.Lock()
	t.awaitHintLocked(time.Now())
	t.h.gate.Unlock()
	for {
		select {
		case <-end:
			return
		case <-t.timer.C:
			t.h.gate.Lock()
			if due(time.Now(), &t.progress.at) {
				t.followLocked()
			}
			if t.h.events.still.Due(time.Now()) {
				t.lookStillLocked()
			}
			t.sendLocked(time.Now())
			t.h.gate.Unlock()
		}
	}
}

func (p *progress) changed(now time.Time) {
	p.events++
	p.last, p.reads, p.fresh = now, false, false
}

// giveLocked records that the program is about to get input.
func (p *progress) giveLocked(now time.Time) {
	p.changed(now)
	p.giving, p.queued = true, true
}

// followed returns the writers that are connected and told of the program's progress.
func (s *clients) followed() (followed []*attachment) {
	for _, w := range s.hinted() {
		if w.isProgram() {
			followed = append(followed, w)
		}
	}
	return followed
}

// followSoonLocked begins to look, or looks at once and then often, for a client that is a program.
func (t *hints) followSoonLocked(a *attachment) {
	if a.isProgram() {
		t.progress.pause, t.progress.at = minProgress, time.Now()
		t.awaitHintLocked(t.progress.at)
	}
}

// followLocked looks what the program does, without the gate, and tells what is new. What was told is told again,
// after longer and longer, because an ack may be lost.
func (t *hints) followLocked() {
	followed := t.h.clients.followed()
	if len(followed) == 0 && !t.h.typing.Unattended() || t.h.life.reaped {
		return
	}
	given := make([]uint64, len(followed))
	for i, w := range followed {
		given[i] = w.hinting.input
	}
	began := time.Now()
	taken := t.lookAtProgressLocked(began)
	p, now := &t.progress, time.Now()
	looked := t.lookLocked(now)
	for i, w := range followed {
		own := w.hinting
		if taken {
			own.taken = given[i]
		}
		if p.pause == progressInterval {
			own.repeats++
		}
		last, repeat := own.last, own.repeats <= maxRepeats && own.repeats&(own.repeats-1) == 0
		if last.Reading != p.reads || last.Taken != own.taken || looked && t.modes != (modes{last.Terminal, last.Context}) ||
			repeat {
			w.endpoint.AckNow(now)
			w.driver.Wake()
		}
	}
	p.at = now.Add(p.pause)
	if p.pause = min(2*p.pause, progressInterval); p.pause == progressInterval {
		p.at = now.Add(max(progressInterval, 10*now.Sub(began))) // a tenth of a processor at most
	}
}

// lookAtProgressLocked looks whether the program waits for input, without the gate, and reports whether it has read all
// that it had been given.
func (t *hints) lookAtProgressLocked(now time.Time) (taken bool) {
	p, program := &t.progress, t.h.program
	before := *p
	t.h.gate.Unlock()
	taken = !before.queued || program.Taken()
	reads := taken && !before.giving && program.Reads(now, now.Sub(before.last))
	t.h.gate.Lock()
	same := p.events == before.events
	if taken && same && !before.giving {
		p.queued = false
	}
	p.reads = reads && same && program.Drained(t.h.reading.bytes)
	if p.fresh = same && t.h.typing.Active(); p.fresh {
		t.h.gate.Changed()
	}
	return taken
}

// lookStillLocked looks whether the terminal waits for a person, and tells that.
func (t *hints) lookStillLocked() {
	if t.h.life.reaped {
		return
	}
	t.lookLocked(time.Now()) // whether it is a shell decides what counts as waiting
	t.lookAtProgressLocked(time.Now())
	now := time.Now()
	hint := wire.Hint{Reading: t.progress.reads}
	if t.lookLocked(now) {
		hint.Terminal, hint.Context = t.modes.flags, t.modes.context
	}
	if kind := t.h.events.still.Look(now, hint.Reading, hint.AtPrompt()); kind != 0 {
		t.h.gate.Unlock()
		program, _ := t.h.program.Foreground()
		t.h.gate.Lock()
		t.h.events.tellLocked(wire.Event{Kind: kind, Program: wire.Printable(program, wire.MaxName)})
	}
}

// stirredLocked makes loop look whether the terminal is still, if that is to be known.
func (t *hints) stirredLocked(now time.Time, stir func(now time.Time)) {
	before := t.h.events.still.Next()
	if stir(now); t.h.events.still.Next() != before {
		t.awaitHintLocked(now)
	}
}
