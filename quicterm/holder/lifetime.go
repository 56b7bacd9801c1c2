//go:build linux || darwin

package holder

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/quicterm/holder/spawn"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A lifetime is what decides when a session is over.
type lifetime struct {
	claimed bool          // a client has attached
	present bool          // the phase is PhaseAttached, or was before PhaseExited
	since   time.Time     // when the phase began
	changed chan struct{} // wakes limitLoop; buffers one

	hungUp      bool                    // the program was hung up
	hangup      wire.ExitStatus         // why and when, unless its client asked for it
	killPending bool                    // SIGKILL follows
	killed      bool                    // by a Kill, or by a Revoke of its only client
	requested   map[syscall.Signal]bool // signals that the client has sent or typed
	stopping    bool                    // the system stops, and with it the program

	reaped  bool // the program has ended; its last output may still wait for a client
	exited  bool // the Exit frame is in the log
	exitSeq uint64
	exit    wire.ExitStatus

	ending bool // the session is over soon
	over   bool
}

func (h *Holder) phaseLocked() wire.Phase {
	switch {
	case h.life.exited:
		return wire.PhaseExited
	case h.clients.present():
		return wire.PhaseAttached
	}
	return wire.PhaseDetached
}

// presenceChangedLocked begins another phase if a client has come or gone.
func (h *Holder) presenceChangedLocked() {
	if present := h.clients.present(); present != h.life.present && !h.life.exited {
		h.life.present, h.life.since = present, time.Now()
	}
	h.endIfUnseenLocked()
	h.stateChangedLocked()
}

// stateChangedLocked makes waiters and limitLoop look at the session again.
func (h *Holder) stateChangedLocked() {
	h.gate.Changed()
	h.keeper.Change()
	wake(h.life.changed)
}

// exitedLocked appends the Exit frame of a program that ended at the given time, killed
// by sig if that is not 0. It blocks while there is no room.
func (h *Holder) exitedLocked(status byte, sig syscall.Signal, at time.Time) {
	h.awaitRoomLocked(wire.MaxExit) // which may take long: the program may be hung up meanwhile
	exit := h.life.hangup
	if exit.Status = status; !h.life.hungUp && sig != 0 && !h.life.requested[sig] {
		exit.Reason, exit.At = "killed by "+unix.SignalName(sig), at
	}
	h.life.exitSeq = h.ring.Next()
	h.life.exited, h.life.exit, h.life.since = true, exit, time.Now()
	h.logLocked(wire.Exit, exit.Append(nil))
	h.calls.happenedLocked(wire.Event{Kind: wire.EventExited, Status: &exit.Status})
	if h.launch.PTY {
		h.emulator.hurry() // told when all before it is drawn
	} else {
		h.events.tellEndLocked()
	}
	log := h.log.With("status", status)
	if exit.Reason != "" {
		log = log.With("reason", exit.Reason)
	}
	log.Info("program ended")
	h.endIfUnseenLocked()
	h.stateChangedLocked()
}

// hangupLocked ends the program as a closed terminal does: SIGHUP, then SIGKILL. The
// first reason is told to the client; it is empty if the client asked for the hangup.
func (h *Holder) hangupLocked(why string) {
	if !h.life.hungUp {
		h.life.hungUp, h.life.hangup = true, wire.ExitStatus{Reason: why, At: time.Now()}
	}
	h.program.Hangup(syscall.SIGHUP)
	if !h.life.killPending {
		h.life.killPending = true
		h.afterLocked(spawn.KillGrace, func() {
			h.life.killPending = false
			h.program.Hangup(syscall.SIGKILL)
		})
	}
	h.stateChangedLocked()
}

// killLocked ends the session for a client or an operator. If its program has ended already, the
// session is over. The reason that other clients are told begins with what is done.
func (h *Holder) killLocked(done, by string) {
	h.log.Info("killed", "client", by)
	if h.life.exited {
		h.finishLocked("killed after its end")
		return
	}
	h.life.killed = true
	why := done
	if by != "" {
		why += " by " + by
	}
	h.hangupLocked(why)
}

// awaitKilledLocked blocks until the program has ended, at most for killWait, and returns the answer.
func (h *Holder) awaitKilledLocked() wire.Body {
	ctx, cancel := context.WithTimeout(context.Background(), killWait)
	defer cancel()
	if h.gate.Wait(ctx, func() bool { return h.life.reaped || h.life.over }) != nil {
		return &wire.Error{Text: fmt.Sprintf("session %q was killed, but has not ended after %v: "+
			"see on the server what its program waits for", h.launch.Name, killWait)}
	}
	return &wire.Done{}
}

// endForLocked is killLocked for an operator. Its clients are told at once, while the program may still run.
func (h *Holder) endForLocked(operator, reason string) {
	text := operator
	if reason != "" {
		text += ": " + reason
	}
	for _, a := range h.clients.all {
		if a.role.receives() {
			a.endpoint.Notify(wire.NoticeEnding, text)
			a.driver.Wake()
		}
	}
	h.killLocked("ended", text)
}

// hiddenLocked reports whether the session is kept only to tell the client that was
// away why it ended: for others it is gone.
func (h *Holder) hiddenLocked() bool { return h.life.killed && h.life.exited }

// endIfKnownLocked ends the session if a client that writes has consumed the program's end. One that is a program does
// not count: what ended under its hands is asked for after that.
func (h *Holder) endIfKnownLocked(a *attachment) {
	if !a.role.receives() || !h.life.exited || !h.clients.knows(a, h.life.exitSeq) {
		return
	}
	if a.role.writes() && !a.isProgram() || h.life.ending {
		h.endSoonLocked("a client knows its end")
	}
	if a.role.writes() || a.follows {
		a.close()
	}
}

// endIfUnseenLocked ends the session if its program was hung up and has ended, and no
// client will come to see that. A pipe also waits for a client that lost its access: without
// an answer, that client would look for the session for minutes.
func (h *Holder) endIfUnseenLocked() {
	untold := func(a *attachment) bool {
		return !h.launch.PTY && a.role == roleRevoked && !a.toldRevoked && !a.follows
	}
	if h.life.exited && h.life.hungUp && h.clients.writer() == nil && !slices.ContainsFunc(h.clients.all, untold) {
		h.endSoonLocked("hung up, and no client is left to see it")
	}
}

// endSoonLocked ends the session when all clients that are connected have consumed the
// program's end, at the latest after exitGrace, except that those that record get the rest first.
func (h *Holder) endSoonLocked(reason string) {
	if h.clients.know(h.life.exitSeq) {
		h.finishLocked(reason)
		return
	}
	if !h.life.ending {
		h.life.ending = true
		h.endLaterLocked(reason)
	}
}

func (h *Holder) endLaterLocked(reason string) {
	h.afterLocked(exitGrace, func() {
		if time.Since(h.life.since) < recorderGrace && h.clients.othersLack(h.life.exitSeq) {
			h.endLaterLocked(reason)
			return
		}
		h.finishLocked(reason)
	})
}

// othersLack reports whether a client that records or follows has not consumed the program's end, and was heard lately.
func (s *clients) othersLack(exit uint64) bool {
	return slices.ContainsFunc(s.all, func(a *attachment) bool {
		recent := a.connected() && time.Since(a.heard) < stallLimit || a.follows && !s.givenUp(a)
		return (a.records || a.follows) && a.role.receives() && recent && !s.knows(a, exit)
	})
}

// givenUp reports whether a client is away for so long that its session's end is not kept for it.
func (s *clients) givenUp(a *attachment) bool { return time.Since(a.heard) >= followerGrace }

// know reports whether all clients that are connected, or follow the session, have consumed the program's end.
func (s *clients) know(exit uint64) bool {
	return !slices.ContainsFunc(s.all, func(a *attachment) bool {
		return a.role.receives() && (a.connected() || a.follows && !s.givenUp(a)) && !s.knows(a, exit)
	})
}

// knows reports whether a client has consumed the program's end, which is a frame of the output.
func (s *clients) knows(a *attachment, exit uint64) bool {
	if a.follows {
		return s.lastEvent > 0 && a.endpoint.Consumed() > s.lastEvent
	}
	return a.endpoint.Consumed() > exit
}

func (h *Holder) limitLoop() {
	for {
		h.gate.Lock()
		left := h.enforceLimitLocked(time.Now())
		h.gate.Unlock()
		var limit <-chan time.Time
		if left > 0 {
			limit = time.After(left)
		}
		select {
		case <-h.end:
			return
		case <-h.life.changed:
		case <-limit:
		}
	}
}

// enforceLimitLocked does what the limit of the phase asks for if it is reached.
// Otherwise it returns how much time is left, or 0 if there is no limit.
func (h *Holder) enforceLimitLocked(now time.Time) (left time.Duration) {
	name, limit := h.limitLocked()
	left = limit - now.Sub(h.life.since)
	if limit == 0 || left > 0 {
		return max(left, 0)
	}
	why := fmt.Sprintf("ended by %s (%s)", name, shortDuration(limit))
	if h.life.exited {
		h.finishLocked(why)
	} else {
		h.log.Info("hanging up", "reason", why)
		h.hangupLocked(why)
	}
	return 0
}

// limitLocked returns the name of what limits the phase, and for how long the phase may
// last, or 0 for no limit.
func (h *Holder) limitLocked() (name string, limit time.Duration) {
	switch {
	case h.clients.present():
		return "", 0
	case h.hiddenLocked():
		return "the time for who was away at a kill", min(hiddenTTL, h.launch.ExitedTTL)
	case h.life.exited:
		return "the time for an exit status", h.launch.ExitedTTL
	case h.life.hungUp:
		return "", 0
	case !h.launch.PTY:
		return "the limit for a command without its client", h.launch.PipeTTL
	}
	return "detached_ttl", h.launch.DetachedTTL
}

// shortDuration formats 1h0m0s as 1h.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
