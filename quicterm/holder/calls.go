//go:build linux || darwin

package holder

import (
	"time"

	"github.com/quicterm/quicterm/quicterm/holder/push"
	"github.com/quicterm/quicterm/quicterm/machine/enrolled"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Calls tell people who do not look that the program waits, has rung or has ended: clients that have the output and ask
// for it, of the first, and devices that have not got the output, by a message to their browser. The gate guards them.
type calls struct {
	h       *Holder
	sender  *push.Sender
	typist  *attachment // in which a person has typed last
	typedAt time.Time
	due     *call // the last one that nobody was told of yet
}

// A call is an event that people may have to be told of.
type call struct {
	kind wire.EventKind
	text string
	at   time.Time
	next uint64 // the frame before which the output tells of it
}

func newCalls(h *Holder) calls {
	return calls{
		h:      h,
		sender: push.New(enrolled.Dir(h.launch.Dir), h.log, push.NewClient()),
	}
}

// askedLocked records what a client has asked for. A key with restrictions, and a guest, get no messages.
func (c *calls) askedLocked(a *attachment, open *wire.Open, n *wire.Notify) {
	a.notified = n != nil && open.Guest == nil
	if open.Guest == nil && open.Scope == "" && !open.NoPTY && len(open.Key) > 0 {
		c.sender.Set(open.Key, n)
	}
}

// typedLocked records that a client has typed, whose agent is that of the session then, unless it is a program.
func (c *calls) typedLocked(a *attachment, d session.Delivered) {
	if d.Gap == nil && d.Type == wire.Stdin && !a.isProgram() {
		c.typist, c.typedAt, a.typedAt = a, time.Now(), c.h.clients.taken
		c.h.offerAgentLocked()
	}
}

// happenedLocked records an event that people may have to be told of.
func (c *calls) happenedLocked(e wire.Event) {
	text := push.Text(e)
	if text == "" || c.h.life.over || !c.h.launch.PTY || !c.wantedLocked() {
		return
	}
	waiting := c.due != nil
	c.due = &call{e.Kind, text, time.Now(), c.h.ring.Next()}
	if waiting {
		return
	}
	c.h.running.Go(func() {
		select {
		case <-c.h.end:
		case <-time.After(callTime):
		}
		c.h.gate.Lock()
		defer c.h.gate.Unlock()
		c.tellLocked()
	})
}

func (c *calls) wantedLocked() bool {
	for _, a := range c.h.clients.all {
		if a.notified && a.role.receives() {
			return true
		}
	}
	return c.sender.Any()
}

// tellLocked tells of the event that is due, unless a person has typed since, or looks.
func (c *calls) tellLocked() {
	due := c.due
	c.due = nil
	if c.typedAt.After(due.at) {
		return
	}
	has := func(a *attachment) bool {
		there := a.connected() || a.left.After(due.at)
		return there && !a.follows && a.endpoint.Consumed() >= due.next
	}
	attended := c.typist != nil && due.at.Sub(c.typedAt) < attendedTime && has(c.typist)
	reached := make(map[string]bool)
	for _, a := range c.h.clients.all {
		if !a.role.receives() || !has(a) {
			continue
		}
		reached[string(a.login.Key)] = true
		if a.notified && due.kind == wire.EventWaits && (!attended || a == c.typist) {
			a.tell(wire.NoticeWaits, "")
		}
	}
	if !attended {
		m := push.Message{Session: c.h.launch.ID.String(), Name: c.h.launch.Name, Text: due.text}
		c.sender.Send(m, due.kind == wire.EventExited, reached)
	}
}
