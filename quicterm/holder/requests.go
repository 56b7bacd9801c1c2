//go:build linux || darwin

package holder

import (
	"fmt"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Handle answers a request that a daemon makes for a client. It needs no socket and does
// not block on the client or the program.
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
		answer, err := h.stateForLocked(open, inScope)
		return answer, nil, err
	case *wire.Resume:
		return h.resumeLocked(request)
	}
	if !inScope {
		return &wire.Error{Code: wire.CodeNoSession, Text: "there is no such session"}, nil, nil
	}
	switch request := request.(type) {
	case *wire.Attach:
		return h.attachLocked(open, request)
	case *wire.Kill:
		h.killLocked("killed", open.Client)
		answer = &wire.Done{}
	case *wire.End:
		h.endForLocked(open.Client, request.Reason)
		answer = &wire.Done{}
	case *wire.Clear:
		answer = h.clearHistoryLocked(open.Client)
	case *wire.Rename:
		answer = h.renameLocked(open.Client, request.Name)
	case *wire.Inspect:
		answer = h.reportLocked()
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
		new(wire.Rename), new(wire.Inspect), new(wire.Revoke),
	} {
		if body.Type() == t {
			return body
		}
	}
	return nil
}

// stateForLocked describes the session to a client of a scope that may not know of it.
func (h *Holder) stateForLocked(open *wire.Open, inScope bool) (*wire.State, error) {
	state, err := h.stateLocked()
	switch {
	case err != nil:
		return nil, err
	case h.hiddenLocked():
		state = &wire.State{Memory: state.Memory, Ended: true} // another session may have the name
	case !inScope:
		state = &wire.State{Memory: state.Memory, Ended: state.Ended}
	default:
		state.Own = h.launch.Scope == open.Scope
	}
	state.Claimed = inScope && open.Instance != (wire.InstanceID{}) &&
		(open.Instance == h.launch.Instance || h.askedBeforeLocked(open.Instance) != nil)
	return state, nil
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
	h.keeper.change()
	return &wire.Done{}
}
