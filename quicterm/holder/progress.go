//go:build linux || darwin

package holder

import (
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// Progress is what the program does with its input, for the clients that are programs too. The holder looks each
// progressInterval while there is such a client.
type progress struct {
	at     time.Time // when to look, or zero
	events uint64    // how often input was given or output came
	giving bool      // input is being given to the program
	queued bool      // some may be in the terminal's queue
	reads  bool      // the program waits for input, and nothing has happened since that was looked up
}

func (t *hints) loop(end <-chan struct{}) {
	defer t.timer.Stop()
	for {
		select {
		case <-end:
			return
		case <-t.timer.C:
			t.h.gate.Lock()
			if due(time.Now(), &t.progress.at) {
				t.followLocked()
			}
			t.sendLocked(time.Now())
			t.h.gate.Unlock()
		}
	}
}

func (p *progress) changed() {
	p.events++
	p.reads = false
}

// giveLocked records that the program is about to get input.
func (p *progress) giveLocked() {
	p.changed()
	p.giving, p.queued = true, true
}

// followed returns the writers that are connected and told of the program's progress.
func (s *clients) followed() (followed []*attachment) {
	for _, w := range s.hinted() {
		if w.hinting.level >= wire.HintsProgram {
			followed = append(followed, w)
		}
	}
	return followed
}

// followSoonLocked begins to look, or looks at once, if a new carrier has such a client.
func (t *hints) followSoonLocked(a *attachment) {
	if a.hinting != nil && a.hinting.level >= wire.HintsProgram {
		t.progress.at = time.Now()
		t.awaitHintLocked(t.progress.at)
	}
}

// followLocked looks what the program does, without the gate, and tells what is new. What was told is told again,
// after longer and longer, because an ack may be lost.
func (t *hints) followLocked() {
	p, program := &t.progress, t.h.program
	followed := t.h.clients.followed()
	if len(followed) == 0 {
		return
	}
	before := *p
	given := make([]uint64, len(followed))
	for i, w := range followed {
		given[i] = w.hinting.input
	}
	began := time.Now()
	quiet := began.Sub(t.h.reading.last) >= unknownQuiet
	t.h.gate.Unlock()
	taken := !before.queued || program.Taken()
	reads := taken && !before.giving && program.Reads(began, quiet)
	t.h.gate.Lock()
	same := p.events == before.events
	if taken && same && !before.giving {
		p.queued = false
	}
	p.reads = reads && same && program.Drained(t.h.reading.bytes)
	now := time.Now()
	looked := t.lookLocked(now)
	for i, w := range followed {
		own := w.hinting
		if taken {
			own.taken = given[i]
		}
		own.repeats++
		last, repeat := own.last, own.repeats <= maxRepeats && own.repeats&(own.repeats-1) == 0
		if last.Reading != p.reads || last.Taken != own.taken || looked && t.modes != (modes{last.Terminal, last.Context}) ||
			repeat {
			w.endpoint.AckNow(now)
			w.driver.Wake()
		}
	}
	p.at = now.Add(max(progressInterval, 10*now.Sub(began))) // a tenth of a processor at most
}
