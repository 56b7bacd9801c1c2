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

const (
	// maxCarriers is how many carriers a client may have at once. For one more the
	// oldest is closed: it is the most likely to be dead. A client that lost contact
	// makes up to 16 attempts at once and keeps the first that is answered, which must
	// not be closed for the others.
	maxCarriers = 32

	// inputWindow is how many bytes of frames wait for a program that does not read its
	// input.
	inputWindow = 1 << 20

	// maxReplayLines is how many lines of scrollback a client may ask for; the screen has fewer.
	maxReplayLines = 1 << 20

	// reorderWindow is how many frames of input may arrive out of order.
	reorderWindow = 100
)

// An attachment is a client process that attached to the session. The holder's gate
// guards it.
type attachment struct {
	role      role
	asked     wire.Role // that it attached in
	number    uint64    // in the order in which the clients came
	since     time.Time
	announced bool      // the writers know of it
	size      wire.Size // of its terminal
	takenAt   uint64    // value of clients.taken when its last input was taken
	instance  wire.InstanceID
	client    string         // account@address
	machine   string         // what the client's machine calls itself, or empty
	login     wire.Resumed   // what let the client in, for its daemon
	answer    *wire.Attached // the same each time the client asks
	verifier  *auth.Verifier
	endpoint  *session.Endpoint
	driver    *driver.Driver
	carriers  []carrier.Carrier // oldest first
	heard     time.Time         // when a frame came last, a carrier began, or the client attached
	left      time.Time         // when its last carrier ended; at first, when it attached
	back      time.Time         // when it had a carrier again, after it had none; or zero
	closed    bool              // further carriers are closed at once
	skipping  bool              // output up to now is about to be skipped
	skips     bool              // it is not waited for: if it falls far behind, output is skipped
	records   bool              // it is not waited for, and output is kept for it
	from      uint64            // the first frame of the output that it gets, if that leaves out what no client has seen
	skippedTo uint64            // the frame up to which that was last
	resting   bool              // it is sent nothing: in a flood, watchers get a snapshot at times

	takesSnapshots    bool
	lines, usualLines int      // of scrollback in its next snapshot, and in those after that
	wantsSnapshot     bool     // its endpoint has asked for one that is not ready
	hinting           *hinting // nil if it gets no hints
	displacedBy       string
	revokedBy         string
	toldRevoked       bool
}

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
		skips:    req.Skip || req.Role.ReadOnly() && !req.Whole,
		records:  req.Whole && req.Role.ReadOnly(),
		verifier: auth.NewVerifier(secret),
	}
	if h.launch.PTY && req.Replay.Kind == wire.ReplayScreen {
		a.lines = int(min(req.Replay.Lines, maxReplayLines))
		if !req.Role.ReadOnly() {
			a.usualLines = a.lines
		}
	}
	cfg := session.Config{
		Log:            h.ring,
		Acked:          first,
		Next:           1,
		Reorder:        reorderWindow,
		Window:         inputWindow,
		PeerDelaysAcks: true,
		TellLimited:    true,
		TellAge:        h.launch.PTY,
	}
	if a.takesSnapshots = h.launch.PTY && req.Replay.Kind != wire.ReplayRaw; a.takesSnapshots {
		cfg.Snapshot = func() (uint64, []byte, bool) { return h.emulator.snapshotLocked(a) }
	}
	if h.launch.PTY && req.Hints && a.role.writes() {
		a.hinting = new(hinting)
		cfg.Note = func(now time.Time) []byte { return h.hints.noteLocked(now, a) }
	}
	a.endpoint = session.NewEndpoint(cfg)
	a.driver = driver.New(&h.gate, a.endpoint, func() { h.receivedLocked(a) })
	a.driver.Asked(driver.Compression(req.Compression))
	return a
}

// displacer names a client for the one that it displaces. Only the part before the machine is proven.
func (a *attachment) displacer() string {
	if a.machine == "" {
		return a.client
	}
	return a.client + " (its machine says that it is " + a.machine + ")"
}

func (a *attachment) connected() bool { return a.driver.Carriers() > 0 }

// away reports whether the client has had no carrier for awayGrace. A client that has just
// attached is about to have one, and one that moves to another network comes back.
func (a *attachment) away(now time.Time) bool {
	return !a.connected() && now.Sub(a.left) >= awayGrace
}

// close closes all carriers, also those to come.
func (a *attachment) close() {
	a.closed = true
	for _, c := range a.carriers {
		c.Close()
	}
}

// carry moves frames between an attachment and one of its carriers until that ends, and
// closes it. If ready is false, the client first says what it has.
func (h *Holder) carry(a *attachment, c carrier.Carrier, ready bool) {
	err := a.driver.Run(c, ready, func(session.CarrierID) {
		a.carriers = append(a.carriers, c)
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

// misbehaved reports whether a carrier ended because of the bytes that it brought.
func misbehaved(err error) bool {
	var protocol *session.ProtocolError
	return errors.As(err, &protocol) || errors.Is(err, driver.ErrCompressed) || errors.Is(err, sealed.ErrForged) ||
		errors.Is(err, buffer.ErrChecksum) || errors.Is(err, buffer.ErrTooLong)
}

func (h *Holder) receivedLocked(a *attachment) {
	a.heard = time.Now()
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
	h.endIfKnownLocked(a)
	for _, n := range a.endpoint.TakeNotices() {
		switch {
		case !a.role.receives():
		case n.Code == wire.NoticeLeaving:
			h.leaveLocked(a)
		case !a.role.writes():
		case n.Code == wire.NoticeReaderGone:
			h.closeOutputLocked([]byte(n.Text))
		}
	}
}
