//go:build linux || darwin

package holder

import (
	"time"

	"github.com/quicterm/quicterm/quicterm/holder/events"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// happenings are the events of the session, and what they come from. The gate guards them, except that the emulator
// alone uses hearing while it draws.
type happenings struct {
	h       *Holder
	log     events.Log
	hearing events.Hearing   // of what is drawn
	heard   uint64           // the frame before which all was heard
	still   events.Stillness // of the terminal

	title, toldTitle string // of the terminal
	titleAt          time.Time
	titleDue         bool // it will be told
	directory        string
}

func newHappenings(h *Holder) happenings {
	return happenings{h: h, log: events.NewLog(), still: events.NewStillness(h.created), heard: 1}
}

// tellLocked adds an event. Of a session without a terminal there is only its end.
func (p *happenings) tellLocked(e wire.Event) {
	if !p.h.launch.PTY && e.Kind != wire.EventExited || p.toldEnd() {
		return
	}
	now := time.Now()
	if e.Time == 0 {
		e.Time = now.UnixMilli()
	}
	e.Output = p.h.ring.Offset(p.h.ring.Next())
	p.log.Append(e)
	p.addedLocked(now)
	if e.Kind != wire.EventExited { // which is known before it is drawn
		p.h.calls.happenedLocked(e)
	}
}

// tellEndLocked tells the program's end, once.
func (p *happenings) tellEndLocked() {
	if p.toldEnd() {
		return
	}
	exit := p.h.life.exit
	p.tellLocked(wire.Event{Kind: wire.EventExited, Status: &exit.Status, Text: exit.Reason})
	p.h.clients.lastEvent = p.log.Ring().Next()
	p.log.End(exit)
	p.addedLocked(time.Now())
}

func (p *happenings) toldEnd() bool { return p.h.clients.lastEvent > 0 }

func (p *happenings) addedLocked(now time.Time) {
	for _, a := range p.h.clients.all {
		if a.follows && a.role.receives() {
			a.endpoint.Appended(now)
			a.driver.Wake()
		}
	}
}

// fromLocked returns where the log of events begins for a client that wants them from one on, or new ones if that is 0.
func (p *happenings) fromLocked(from uint64) (b beginning) {
	switch {
	case from > 0:
		b.first = p.log.Find(from)
	case p.toldEnd():
		b.first = p.log.Find(p.h.clients.lastEvent - 1)
	default:
		b.first = p.log.Ring().Next()
	}
	b.offset = p.log.Ring().Offset(b.first)
	return b
}

// drawnLocked tells what was heard in the output that was drawn, and what the screen knows then.
func (p *happenings) drawnLocked(title, directory string) {
	for _, e := range p.hearing.Take() {
		p.tellLocked(e)
	}
	if directory != p.directory {
		p.directory = directory
		p.tellLocked(wire.Event{Kind: wire.EventDirectory, Text: directory})
	}
	p.title = title
	p.tellTitleLocked()
}

// tellTitleLocked tells the title, but not more than one each titleInterval: some programs turn something in it.
func (p *happenings) tellTitleLocked() {
	now := time.Now()
	switch left := titleInterval - now.Sub(p.titleAt); {
	case p.title == p.toldTitle:
	case left <= 0:
		p.toldTitle, p.titleAt = p.title, now
		p.tellLocked(wire.Event{Kind: wire.EventTitle, Text: p.title})
	case !p.titleDue:
		p.titleDue = true
		p.h.afterLocked(left, func() {
			p.titleDue = false
			p.tellTitleLocked()
		})
	}
}

// tellClientLocked tells that a client has come, or has gone.
func (p *happenings) tellClientLocked(a *attachment, came bool, why string) {
	if a.told == came || a.asked == wire.RolePeek || a.follows {
		return
	}
	a.told = came
	e := wire.Event{Kind: wire.EventDetached, Client: a.client, Role: a.asked, Text: why}
	if came {
		e.Kind = wire.EventAttached
	}
	p.tellLocked(e)
}

// answerLocked answers the queries of the program in place of a terminal, if no person has one at the session. What the
// program does not read while more is answered is dropped.
func (h *Holder) answerLocked(answers []byte) {
	if h.answers != nil || !h.unansweredLocked() {
		return
	}
	if h.answers = answers; answers != nil {
		h.gate.Changed()
	}
}

// unansweredLocked reports whether no terminal of a person answers the program's queries.
func (h *Holder) unansweredLocked() bool {
	now := time.Now()
	for w := range h.clients.writers() {
		if !w.isProgram() && !w.away(now) {
			return false
		}
	}
	return true
}
