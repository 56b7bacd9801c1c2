//go:build linux || darwin

package holder

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// maxInput bounds the input in a request, which is an Entry: more than one with all that it may have.
const maxInput = wire.MaxEntry + 1<<10

// mayAttachLocked returns why a client may not attach, or nil. A client that asks again was
// told yes.
func (h *Holder) mayAttachLocked(open *wire.Open, req *wire.Attach, again bool) error {
	name := h.launch.Name
	reads := req.Events || req.Role == wire.RoleWatch && req.Whole && h.launch.Scope == open.Scope
	switch {
	case h.life.over || h.hiddenLocked() && !again:
		return fmt.Errorf("session %q is over", name)
	case h.launch.PTY && open.NoPTY:
		return errors.New("this key may not have a terminal")
	case again:
		return nil
	case !req.Role.Known():
		return fmt.Errorf("the server does not know role %d: it may be older than this client", req.Role)
	case req.Events && !req.Role.ReadOnly():
		return fmt.Errorf("a client of role %s cannot get events in place of the output: watch or peek", req.Role)
	case !h.launch.PTY && req.Role != wire.RoleWriter && !reads:
		return fmt.Errorf("session %q has no terminal: only the client that started it can use it, "+
			"and qt tail and qt wait --exit with the same key can follow it", name)
	case !h.launch.PTY && (h.life.claimed || req.PTY) && !reads:
		return fmt.Errorf("session %q is a pipe: only the client that started it can use it", name)
	case h.launch.PTY && !req.PTY && !req.Role.ReadOnly():
		return fmt.Errorf("session %q has a terminal: attach to it from one, or choose another name", name)
	case h.life.claimed && req.Command != "":
		return fmt.Errorf("session %q runs already: attach to it without a command, or choose another name", name)
	case len(req.Input) > maxInput:
		return fmt.Errorf("%d bytes of input in a request, more than %d: send it when attached", len(req.Input), maxInput)
	case len(req.Input) > 0 && (!h.launch.PTY || req.Role.ReadOnly()):
		return fmt.Errorf("input for session %q from a client that only watches it, or without a terminal: send none", name)
	case open.Guest != nil && !mayGuest(open.Guest, req.Role):
		return errors.New("the share is for watching, or its link was changed")
	case open.Guest != nil && time.Now().Unix() >= open.Guest.Until:
		return errors.New("the share has ended")
	case open.Guest != nil && !h.makeRoomLocked(true):
		return fmt.Errorf("session %q has as many guests already as it may have", name)
	case open.Guest == nil && req.Role != wire.RoleWriter && !h.makeRoomLocked(false):
		return fmt.Errorf("session %q has %d clients beside its writer already: "+
			"attach when one has left, qt ls shows them", name, h.clients.maxGuests)
	}
	return nil
}

// mayGuest reports whether a guest may have a role: one of which the writer is told.
func mayGuest(g *wire.Guest, role wire.Role) bool {
	return role == wire.RoleWatch || g.Types && role == wire.RoleShare
}

// ofGuest returns all that counts of the request of a guest. It is not waited for, has no size, and begins at the screen.
func ofGuest(req *wire.Attach) *wire.Attach {
	return &wire.Attach{
		Mode: wire.ModeAttach, Instance: req.Instance, PTY: req.PTY, Role: req.Role,
		Replay: wire.Replay{Kind: wire.ReplayScreen}, Skip: true, Compression: req.Compression,
		Hints: min(req.Hints, wire.HintsPredict), Machine: req.Machine,
	}
}

// attachLocked adds a client in the role that it asks for. The answer is Attached or Error. A client that lost the
// connection before the answer asks again, and gets the same one.
func (h *Holder) attachLocked(
	open *wire.Open, req *wire.Attach,
) (answer wire.Body, carry func(carrier.Carrier), err error) {
	if open.Guest != nil {
		req = ofGuest(req)
	}
	a := h.clients.askedBefore(req.Instance)
	if a == nil && h.launch.PTY && h.life.claimed && !req.Events && req.Replay.Kind == wire.ReplayScreen {
		h.emulator.awaitDrawnLocked()
		a = h.clients.askedBefore(req.Instance)
	}
	var activity *wire.Activity
	if a == nil && req.Role == wire.RolePeek && !req.Events {
		activity = h.peekLocked()
		a = h.clients.askedBefore(req.Instance)
	}
	if err := h.mayAttachLocked(open, req, a != nil); err != nil {
		return &wire.Error{Text: err.Error()}, nil, nil
	}
	if a != nil {
		if !a.isOf(open) {
			return &wire.Error{Text: "another client has that instance"}, nil, nil
		}
		if refusal := h.refusalLocked(a); refusal != nil {
			return refusal, nil, nil
		}
		a.login, a.agent = loginOf(open), wire.ParseAgentID(req.Agent)
		h.offerAgentLocked()
		return a.answer, func(c carrier.Carrier) { h.carry(a, c, false) }, nil
	}
	secret, err := auth.NewSecret()
	if err != nil {
		return nil, nil, err
	}
	created := !h.life.claimed && !req.Role.ReadOnly()
	h.life.claimed = h.life.claimed || created
	var again []byte
	if e, err := wire.ParseEntry(req.Input); err == nil {
		if before, ok := h.typing.Known(e.ID); ok {
			again, req.Replay = before.Append(nil), wire.Replay{Kind: wire.ReplayFrom, From: before.Offset}
		}
	}
	begin := h.beginningLocked(req, created)
	a = h.newAttachment(open, req, secret, begin.first)
	if open.Guest != nil {
		a.until = open.Guest.Until
		h.afterLocked(time.Until(time.Unix(open.Guest.Until, 0)), func() { h.endGuestLocked(a) })
	}
	if created {
		a.size = h.launch.Size // its own, and that of the program's terminal already
	}
	h.calls.askedLocked(a, open, req.Notify)
	h.missedLocked(a, h.clients.shown)
	for _, before := range h.clients.add(a) {
		h.displacedLocked(before, a.client)
	}
	h.clients.forgetLost()
	h.offerAgentLocked()
	if a.role == roleWriter {
		h.presenceChangedLocked()
	}
	if a.role.writes() {
		if h.launch.PTY && (a.role == roleWriter || req.Own) {
			h.ownership.Take(a.number)
		}
		h.fitTerminalLocked()
	}
	live := h.ring.Next()
	if a.follows {
		live = h.events.log.Ring().Next()
	}
	if created { // its client answers what the program has asked already
		live = begin.first
	}
	if begin.screen {
		h.skipToPresentLocked(a, a.lines)
		if begin.unseen > 0 && a.role.writes() {
			a.from, h.clients.hidden = a.skippedTo, begin.unseen
		}
	}
	if req.Replay.Kind == wire.ReplayFrom && begin.first > h.clients.unseen && !a.follows {
		a.from = begin.first
	}
	if len(req.Input) > 0 {
		a.endpoint.Accept(buffer.Frame{Seq: 1, Type: wire.EntryFrame, Payload: req.Input})
		h.gate.Changed()
	}
	a.endpoint.Appended(time.Now())
	h.log.Info("client attached", "client", a.client, "role", req.Role.String())
	a.answer = &wire.Attached{
		ID:      h.launch.ID,
		UID:     uint32(os.Geteuid()),
		Boot:    h.boot,
		Created: created,
		Name:    h.launch.Name,
		Secret:  secret,
		PTY:     h.launch.PTY,
		First:   begin.first,
		Offset:  begin.offset,
		Live:    live,
		Trim:    begin.trim,
		Unseen:  begin.unseen,
		Size:    h.ownership.Size,
		Role:    req.Role,

		Number: a.number,
		Owner:  h.ownership.Owner,
		Events: a.follows,
		Again:  again,

		Side: h.launch.Side,

		Activity: activity,
	}
	if req.Hints >= wire.HintsProgram {
		a.answer.Typists = h.typing.Typists()
	}
	return a.answer, func(c carrier.Carrier) { h.carry(a, c, true) }, nil
}

// displacedLocked tells a client that it is not a writer any more, and drops its input
// that the program was not given.
func (h *Holder) displacedLocked(a *attachment, by string) {
	if n := a.endpoint.DropPending(); n > 0 {
		h.log.Info("input of a displaced client dropped", "client", a.client, "frames", n)
	}
	h.typing.Leave(a.number)
	a.endpoint.Notify(wire.NoticeDisplaced, a.displacedBy)
	a.driver.Wake()
	if a.told {
		a.told = false
		h.events.tellLocked(wire.Event{Kind: wire.EventDisplaced, Client: a.client, By: by})
	}
	h.afterLocked(displacedGrace, a.close) // if the client does not
}
