//go:build linux || darwin

package holder

import (
	"fmt"
	"log/slog"
	"time"

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
	h.gate.Lock()
	defer h.gate.Unlock()
	inScope := h.launch.Scope == open.Scope || open.Scope == ""
	switch m.Type {
	case wire.TypeQuery:
		state, err := h.stateLocked()
		switch {
		case err != nil:
			return nil, nil, err
		case h.hiddenLocked():
			state = &wire.State{Memory: state.Memory, Ended: true} // another session may have the name
		case !inScope:
			state = &wire.State{Memory: state.Memory, Ended: state.Ended}
		default:
			state.Own = h.launch.Scope == open.Scope
		}
		state.Claimed = inScope && open.Instance != (wire.InstanceID{}) &&
			(open.Instance == h.launch.Instance || h.askedBeforeLocked(open.Instance) != nil)
		return state, nil, nil
	case wire.TypeResume:
		var req wire.Resume
		if err := m.Decode(&req); err != nil {
			return nil, nil, err
		}
		return h.resumeLocked(&req)
	}
	if !inScope {
		return &wire.Error{Code: wire.CodeNoSession, Text: "there is no such session"}, nil, nil
	}
	switch m.Type {
	case wire.TypeKill:
		h.killLocked("killed", open.Client)
		return &wire.Done{}, nil, nil
	case wire.TypeEnd:
		var req wire.End
		if err := m.Decode(&req); err != nil {
			return nil, nil, err
		}
		h.endForLocked(open.Client, req.Reason)
		return &wire.Done{}, nil, nil
	case wire.TypeClear:
		return h.clearHistoryLocked(open.Client), nil, nil
	case wire.TypeRename:
		var req wire.Rename
		if err := m.Decode(&req); err != nil {
			return nil, nil, err
		}
		return h.renameLocked(open.Client, req.Name), nil, nil
	case wire.TypeAttach:
		var req wire.Attach
		if err := m.Decode(&req); err != nil {
			return nil, nil, err
		}
		return h.attachLocked(open, &req)
	case wire.TypeInspect:
		if err := m.Decode(new(wire.Inspect)); err != nil {
			return nil, nil, err
		}
		return h.reportLocked(), nil, nil
	case wire.TypeRevoke:
		var req wire.Revoke
		if err := m.Decode(&req); err != nil {
			return nil, nil, err
		}
		return &wire.Revoked{Clients: h.revokeLocked(open.Client, &req)}, nil, nil
	}
	return &wire.Error{Code: wire.CodeUnknown, Text: fmt.Sprintf("message %d is not known", m.Type)}, nil, nil
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

// deniedInterval is the least time between two lines about resumes that are denied. Who
// knows a session's id can cause any number of them, and a person reads one a second.
const deniedInterval = time.Second

// denials log resumes that are denied.
type denials struct {
	at         time.Time // of the last line
	suppressed int       // lines since
}

// log logs that a resume was denied, unless it has done so within deniedInterval.
func (d *denials) log(log *slog.Logger, reason error) {
	now := time.Now()
	if !d.at.IsZero() && now.Sub(d.at) < deniedInterval {
		d.suppressed++
		return
	}
	log.Warn("resume denied", "error", reason, "suppressed", d.suppressed)
	d.at, d.suppressed = now, 0
}
