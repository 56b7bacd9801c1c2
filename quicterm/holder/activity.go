//go:build linux || darwin

package holder

import (
	"runtime"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// peekLocked is activityLocked with what only a client that peeks is told.
func (h *Holder) peekLocked() *wire.Activity {
	a := h.activityLocked()
	if a == nil {
		return nil
	}
	if p, ok := h.program.(interface{ Directory() string }); ok {
		if dir := p.Directory(); len(dir) <= wire.MaxDir {
			a.Dir = dir
		}
	}
	a.Last = h.emulator.command.ended
	return a
}

// missedLocked records what a writer is told when it comes back: that a command has ended, if the writer had the output
// only up to before a frame.
func (h *Holder) missedLocked(a *attachment, next uint64) {
	if c := &h.emulator.command; c.ended != nil && c.next > next && a.role.writes() {
		a.missed = c.ended.String()
	}
}

// activityLocked returns what a program that runs on a terminal does, or nil if there is none. It looks at the moment,
// without the gate: nobody follows it for that.
func (h *Holder) activityLocked() *wire.Activity {
	if !h.launch.PTY || h.life.reaped {
		return nil
	}
	now, t := time.Now(), &h.hints
	t.lookLocked(now) // whether it is a shell decides what counts as waiting
	t.lookAtProgressLocked(now)
	h.gate.Unlock()
	name, started := h.program.Foreground()
	h.gate.Lock()
	a := &wire.Activity{Program: name, Since: max(started.Unix(), 0)} // 0 if it is not known
	t.lookLocked(now)
	switch p := &t.progress; {
	case t.promptLocked():
		a.Waits, a.Since = wire.WaitsPrompt, max(p.last.Unix(), 0)
	case p.reads:
		a.Waits, a.Since = wire.WaitsInput, max(p.last.Unix(), 0)
	case runtime.GOOS == "linux": // elsewhere, the system does not tell
		a.Waits = wire.WaitsNothing
	}
	return a
}
