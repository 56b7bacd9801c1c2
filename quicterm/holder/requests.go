//go:build linux || darwin

package holder

import (
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Handle answers a request that a daemon makes for a client. It needs no socket, and does not block on the client. It
// blocks on the program for a Kill or an End only, at most for killWait.
//
// If the answer is Attached or Resumed, carry is not nil: the caller sends the answer,
// and calls carry at most once with the carrier on which the client's frames follow.
// carry blocks until the carrier ends, at the latest when the session is over, and closes
// the carrier. A caller that cannot send the answer does not call carry.
//
// After an error there is no answer.
func (h *Holder) Handle(open *wire.Open, m wire.Message) (answer wire.Message, carry func(carrier.Carrier), err error) {
	body, carry, err := h.dispatch(open, m)
	if err != nil {
		return wire.Message{}, nil, err
	}
	answer, err = wire.New(body)
	return answer, carry, err
}

func (h *Holder) dispatch(open *wire.Open, m wire.Message) (answer wire.Body, carry func(carrier.Carrier), err error) {
	request := bodyOf(m.Type)
	if request != nil {
		if err := m.Decode(request); err != nil {
			return nil, nil, err
		}
	}
	h.gate.Lock()
	defer h.gate.Unlock()
	inScope := h.launch.Scope == open.Scope || open.Scope == ""
	switch request := request.(type) {
	case *wire.Query:
		answer, err := h.stateLocked(open, request, inScope)
		return answer, nil, err
	case *wire.Resume:
		return h.resumeLocked(request)
	}
	if _, attaches := request.(*wire.Attach); open.Guest != nil && !attaches {
		return &wire.Error{Text: "a guest may only attach"}, nil, nil
	}
	if !inScope {
		return &wire.Error{Code: wire.CodeNoSession, Text: "there is no such session"}, nil, nil
	}
	switch request := request.(type) {
	case *wire.Attach:
		return h.attachLocked(open, request)
	case *wire.Kill:
		h.killLocked("killed", open.Client)
		answer = h.awaitKilledLocked()
	case *wire.End:
		h.endForLocked(open.Client, request.Reason)
		answer = h.awaitKilledLocked()
	case *wire.Clear:
		answer = h.clearHistoryLocked(open.Client)
	case *wire.Rename:
		answer = h.renameLocked(open.Client, request.Name)
	case *wire.Inspect:
		answer = h.reportLocked()
	case *wire.Appeared:
		h.appearedLocked(request.Scope)
		answer = &wire.Done{}
	case *wire.OfferFile:
		answer = h.offerLocked(request)
	case *wire.Revoke:
		answer = &wire.Revoked{Clients: h.revokeLocked(open.Client, request)}
	default:
		answer = &wire.Error{Code: wire.CodeUnknown, Text: fmt.Sprintf("message %d is not known", m.Type)}
	}
	return answer, nil, nil
}

// bodyOf returns the body of a request, or nil if its type is unknown.
func bodyOf(t wire.Type) wire.Body {
	for _, body := range []wire.Body{
		new(wire.Query), new(wire.Resume), new(wire.Attach), new(wire.Kill), new(wire.End), new(wire.Clear),
		new(wire.Rename), new(wire.Inspect), new(wire.Revoke), new(wire.Appeared), new(wire.OfferFile),
	} {
		if body.Type() == t {
			return body
		}
	}
	return nil
}

// offerLocked tells the client at the keyboard that a file is offered.
func (h *Holder) offerLocked(o *wire.OfferFile) wire.Body {
	to := h.calls.typist
	if to == nil || to.guest || !to.connected() || !to.role.writes() || !slices.Contains(h.clients.all, to) {
		to = nil
		for _, a := range h.clients.all {
			if a.connected() && a.role.writes() && !a.guest && !a.isProgram() && (to == nil || a.heard.After(to.heard)) {
				to = a
			}
		}
	}
	if to == nil {
		return &wire.Error{Text: "no client is at the keyboard of this session"}
	}
	to.tell(wire.NoticeFile, o.String())
	return &wire.Done{}
}

// renameLocked gives the session another name. The daemon sees to it that no other session of the account has it.
func (h *Holder) renameLocked(client, name string) wire.Body {
	if !wire.ValidName(name) {
		return &wire.Error{Text: fmt.Sprintf("%q cannot be a session's name", name)}
	}
	h.log.Info("session renamed", "client", client, "name", name)
	h.launch.Name = name
	for _, a := range h.clients.all {
		a.tell(wire.NoticeRenamed, name)
	}
	h.keeper.Change()
	return &wire.Done{}
}

// stateLocked describes the session. Of one that the client may not see, or that is kept only to tell why it ended, it
// says what the account's limits need: another session may have its name.
func (h *Holder) stateLocked(open *wire.Open, query *wire.Query, inScope bool) (*wire.State, error) {
	memory := uint64(h.ring.Memory() + h.emulator.memory + h.events.log.Ring().Memory())
	claimed := inScope && open.Instance != (wire.InstanceID{}) &&
		(open.Instance == h.launch.Instance || h.clients.askedBefore(open.Instance) != nil)
	follows := slices.ContainsFunc(h.clients.all, func(a *attachment) bool { return a.follows && a.role.receives() })
	if !inScope || h.hiddenLocked() || h.launch.Side != 0 {
		return &wire.State{
			Memory: memory, Ended: h.life.exited, Claimed: claimed, Follows: follows, Side: h.launch.Side,
		}, nil
	}
	var activity *wire.Activity
	if query.Activity {
		activity = h.activityLocked()
	}
	info := wire.Info{
		ID:      h.launch.ID,
		Name:    h.launch.Name,
		Phase:   h.phaseLocked(),
		Since:   h.life.since.Unix(),
		Created: h.created.Unix(),
		PTY:     h.launch.PTY,
		Cols:    h.ownership.Size.Cols,
		Rows:    h.ownership.Size.Rows,
		Members: h.clients.members(),
		Command: h.launch.Command,
		Status:  h.life.exit.Status,

		Activity: activity,
	}
	for w := range h.clients.writers() {
		if info.Phase == wire.PhaseAttached {
			info.Heard = max(info.Heard, w.heard.Unix())
		}
	}
	raw, err := wire.EncodeInfo(info)
	if err != nil {
		return nil, fmt.Errorf("describe session: %w", err)
	}
	return &wire.State{
		Memory:  memory,
		Own:     h.launch.Scope == open.Scope,
		Claimed: claimed,
		Phase:   info.Phase,
		Since:   h.life.since.UnixNano(),
		Visible: true,
		Ended:   h.life.exited,
		PTY:     h.launch.PTY,
		Name:    h.launch.Name,
		Info:    raw,
		Follows: follows,
	}, nil
}

func (h *Holder) reportLocked() *wire.Report {
	counters := h.clients.past
	for _, a := range h.clients.all {
		counters = sum(counters, a.endpoint.Counters())
	}
	r := &wire.Report{
		Software:   h.software,
		Name:       h.launch.Name,
		Phase:      h.phaseLocked(),
		Since:      h.life.since.Unix(),
		Created:    h.created.Unix(),
		PTY:        h.launch.PTY,
		Memory:     uint64(h.ring.Memory() + h.emulator.memory + h.events.log.Ring().Memory()),
		Ring:       uint64(h.ring.Memory()),
		Capacity:   uint64(h.ring.Capacity()),
		Gaps:       counters.Evicted,
		Duplicates: counters.Duplicates,
		Corrupted:  counters.Corrupted,
		Status:     h.life.exit.Status,
		Reason:     h.life.exit.Reason,
	}
	if w := h.clients.writer(); w != nil {
		r.RTT = w.endpoint.BestRTT()
	}
	return r
}

// awaitEnd blocks until the session is over, if an Inspect asks for that. It reports false if the
// daemon has closed the connection before.
func (h *Holder) awaitEnd(c *net.UnixConn, m wire.Message) bool {
	var req wire.Inspect
	if err := m.Decode(&req); err != nil || !req.AtEnd {
		return true // Handle refuses what does not decode
	}
	c.SetDeadline(time.Time{})
	gone := make(chan struct{})
	go func() {
		io.Copy(io.Discard, c)
		close(gone)
	}()
	select {
	case <-h.end:
	case <-gone:
		return false
	}
	c.SetReadDeadline(time.Now()) // ends the goroutine
	<-gone
	c.SetWriteDeadline(time.Now().Add(requestTime))
	return true
}
