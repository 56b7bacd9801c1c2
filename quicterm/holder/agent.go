//go:build linux || darwin

package holder

import "github.com/quicterm/quicterm/quicterm/wire"

// offerAgentLocked makes the ssh agent of the client at the keyboard that of the session, if it has one. It is called
// whenever that may be another one.
func (h *Holder) offerAgentLocked() {
	if h.offer != nil {
		h.offer(h.clients.agentAtKeyboard())
	}
}

// agentAtKeyboard returns the agent of the writer in which a person typed last, also for agentGrace after its last carrier:
// what asks then waits. While a guest is connected there is none: the guest could use it.
func (s *clients) agentAtKeyboard() (none wire.AgentID) {
	var keyboard *attachment
	for _, a := range s.all {
		switch {
		case a.guest && a.role.receives() && a.connected():
			return none
		case a.role.writes() && !a.isProgram() && (keyboard == nil || a.typedAt > keyboard.typedAt):
			keyboard = a
		}
	}
	if keyboard == nil || !keyboard.keepsAgent() {
		return none
	}
	return keyboard.agent
}
