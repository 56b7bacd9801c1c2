//go:build linux || darwin

package holder

import (
	"slices"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// ports are those at which processes of the session listen, for its events and for clients that may forward them. The
// gate guards them.
type ports struct {
	h      *Holder
	open   []uint16
	looked time.Time
	due    bool // a look
	told   bool // clients were told of some
}

// lookLaterLocked looks soon, if a client wants to know: something was printed, or a client has come.
func (p *ports) lookLaterLocked() {
	finder, ok := p.h.program.(interface{ Ports() []uint16 })
	if !ok || p.due || !slices.ContainsFunc(p.h.clients.all, (*attachment).wantsPorts) {
		return
	}
	p.due = true
	p.h.afterLocked(max(portsDelay, portsInterval-time.Since(p.looked)), func() {
		p.due, p.looked = false, time.Now() // what is printed from here on is for the next one
		p.h.gate.Unlock()
		open := finder.Ports()
		p.h.gate.Lock()
		p.foundLocked(open)
	})
}

// wantsPorts reports whether a client is told of ports: one that may forward them, by a notice, or by the events.
func (a *attachment) wantsPorts() bool {
	return a.connected() && (a.follows || a.forwards && a.role.writes())
}

func (p *ports) foundLocked(open []uint16) {
	if slices.Equal(open, p.open) {
		return
	}
	for _, change := range []struct {
		kind      wire.EventKind
		are, were []uint16
	}{{wire.EventPortClosed, p.open, open}, {wire.EventPortOpened, open, p.open}} {
		for _, port := range change.are {
			if !slices.Contains(change.were, port) {
				p.h.events.tellLocked(wire.Event{Kind: change.kind, Port: port})
			}
		}
	}
	p.open, p.told = open, true
	for _, a := range p.h.clients.all {
		p.tellLocked(a)
	}
}

// tellLocked tells a client which ports are open, if it may forward them, and they are any news.
func (p *ports) tellLocked(a *attachment) {
	if p.told && a.forwards && a.role.writes() {
		a.tell(wire.NoticePorts, wire.PortsText(p.open))
	}
}
