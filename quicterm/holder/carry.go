//go:build linux || darwin

package holder

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/sealed"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/session/driver"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// newAttachment returns the attachment of a client that has output from first on to get.
func (h *Holder) newAttachment(open *wire.Open, req *wire.Attach, secret []byte, first uint64) *attachment {
	now := time.Now()
	a := &attachment{
		role:     role(req.Role),
		asked:    req.Role,
		since:    now,
		left:     now,
		heard:    now,
		size:     req.Size,
		instance: req.Instance,
		client:   open.Client,
		machine:  req.Machine,
		login:    loginOf(open),
		skips:    !req.Events && (req.Skip || req.Role.ReadOnly() && !req.Whole),
		records:  req.Whole && req.Role.ReadOnly() && !req.Events,
		follows:  req.Events,
		guest:    open.Guest != nil,
		forwards: open.Forwards,
		agent:    wire.ParseAgentID(req.Agent),
		verifier: auth.NewVerifier(secret),
	}
	if h.launch.PTY && !a.follows && req.Replay.Kind == wire.ReplayScreen {
		a.lines = int(min(req.Replay.Lines, maxReplayLines))
		if !req.Role.ReadOnly() {
			a.usualLines = a.lines
		}
	}
	cfg := session.Config{
		Log:            h.ring,
		Acked:          first,
		Next:           1,
		Window:         inputWindow,
		PeerDelaysAcks: true,
		TellLimited:    true,
		TellAge:        h.launch.PTY && !a.follows,
	}
	if a.follows {
		cfg.Log = h.events.log.Ring()
	}
	raw := req.Replay.Kind == wire.ReplayRaw || req.Replay.Kind == wire.ReplayFrom
	if a.takesSnapshots = h.launch.PTY && !a.follows && !raw; a.takesSnapshots {
		cfg.Snapshot = func() (uint64, []byte, bool) { return h.emulator.snapshotLocked(a) }
	}
	if h.launch.PTY && req.Hints != 0 && a.role.writes() {
		a.hinting = &hinting{level: req.Hints}
		cfg.Note = func(now time.Time) []byte { return h.hints.noteLocked(now, a) }
	}
	a.endpoint = session.NewEndpoint(cfg)
	a.driver = driver.New(&h.gate, a.endpoint, func() { h.receivedLocked(a) })
	a.driver.Compress(driver.Compression(req.Compression))
	return a
}

// carry moves frames between an attachment and one of its carriers until that ends, and
// closes it. If ready is false, the client first says what it has.
func (h *Holder) carry(a *attachment, c carrier.Carrier, ready bool) {
	err := a.driver.Run(c, ready, func(session.CarrierID) {
		a.carriers = append(a.carriers, c)
		if time.Since(a.heard) >= missedTime {
			h.missedLocked(a, a.endpoint.Consumed())
		}
		a.heard = time.Now()
		if len(a.carriers) > maxCarriers {
			a.carriers[0].Close()
		}
		if a.closed { // after Handle has answered
			c.Close()
		}
		if a.driver.Carriers() == 1 {
			h.cameLocked(a)
		}
		h.newCarrierLocked(a)
		h.hints.followSoonLocked(a)
	})
	h.gate.Lock()
	defer h.gate.Unlock()
	a.carriers = slices.DeleteFunc(a.carriers, func(other carrier.Carrier) bool { return other == c })
	if !a.connected() {
		a.left = time.Now()
		h.wentLocked(a)
	}
	level := slog.LevelDebug
	if misbehaved(err) {
		level = slog.LevelWarn
	}
	h.log.Log(context.Background(), level, "carrier ended", "client", a.client, "error", err)
}

// giveUpLocked gives up the frame that a client waits for: memory has changed it, and no carrier could bring it. The
// client gets a gap in its place, after which that of a pipe ends. If the frame is the program's end, that is logged
// again.
func (h *Holder) giveUpLocked(a *attachment) {
	seq := a.endpoint.Acked()
	a.endpoint.GiveUp()
	h.log.Warn("output was changed in memory and is lost", "frame", seq)
	if h.life.exited && h.life.exitSeq == seq && !a.follows {
		h.life.exitSeq = h.ring.Next()
		if h.launch.PTY && h.emulator.ended { // it has drawn all before the frame
			h.emulator.next, h.emulator.ended = h.life.exitSeq, false
		}
		h.logLocked(wire.Exit, h.life.exit.Append(nil))
	}
}

// misbehaved reports whether a carrier ended because of the bytes that it brought.
func misbehaved(err error) bool {
	var protocol *session.ProtocolError
	return errors.As(err, &protocol) || errors.Is(err, driver.ErrCompressed) || errors.Is(err, sealed.ErrForged) ||
		errors.Is(err, buffer.ErrChecksum) || errors.Is(err, buffer.ErrTooLong)
}

func (h *Holder) receivedLocked(a *attachment) {
	a.heard = time.Now()
	if a.endpoint.Damaged() {
		h.giveUpLocked(a)
	}
	if !a.role.writes() {
		// Not consumed: after inputWindow bytes, nothing more is accepted.
		a.endpoint.DropPending()
	}
	for _, d := range a.endpoint.Arrived() {
		if d.Gap == nil {
			h.handleUrgentLocked(a, d.Frame)
		}
	}
	if a.role.writes() {
		h.clients.release()
		h.gate.Changed()
	}
	h.skipFloodLocked(a)
	h.endIfKnownLocked(a)
	for _, n := range a.endpoint.TakeNotices() {
		switch {
		case !a.role.receives():
		case n.Code == wire.NoticeLeaving:
			h.calls.sender.Set(a.login.Key, nil)
			h.leaveLocked(a)
		case !a.role.writes():
		case n.Code == wire.NoticeReaderGone:
			h.closeOutputLocked([]byte(n.Text))
		}
	}
}
