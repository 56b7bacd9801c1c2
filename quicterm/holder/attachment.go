//go:build linux || darwin

package holder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/pump"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// maxCarriers is how many carriers a client may have at once. The oldest
	// goes for a new one: it is likely the deadest. A client in need makes up to
	// 16 attempts at once and keeps the first to be answered, so that is not to go
	// before the others have.
	maxCarriers = 32

	// maxDisplaced is how many displaced clients are told by whom when they
	// come back.
	maxDisplaced = 16

	// nudge is how long a terminal has another size, so that a program that
	// was drawn by somebody else's screen draws itself anew.
	nudge = 50 * time.Millisecond
)

// An attachment is a client process that is, or was, the session's writer. The
// holder's mutex guards it.
type attachment struct {
	instance    wire.InstanceID
	client      string // who and from where
	verifier    *auth.Verifier
	peer        *session.Peer
	pump        *pump.Pump
	queue       []session.Delivered // input that the program has not been given
	carriers    []carrier.Carrier   // oldest first
	closed      bool                // it gets no more carriers
	displacedBy string
}

// attachLocked makes a client the writer of the session, and says what it has
// to know.
func (h *Holder) attachLocked(open *wire.Open, req *wire.Attach) (*attachment, *wire.Attached, error) {
	secret, err := auth.NewSecret()
	if err != nil {
		return nil, nil, err
	}
	first, offset, skip := h.replayLocked()
	a := &attachment{
		instance: req.Instance,
		client:   open.Client,
		verifier: auth.NewVerifier(secret),
		peer: session.NewPeer(session.Config{
			Log:     h.ring,
			Acked:   first,
			Next:    1,
			Reorder: reorderWindow,
			Window:  inputWindow,
			Patient: true,
		}),
	}
	a.pump = pump.New(&h.mu, a.peer, func() { h.receivedLocked(a) })
	created := !h.attached
	h.attached = true
	if h.writer != nil {
		h.displaceLocked(h.writer, open.Client)
	}
	h.writer = a
	a.peer.Appended(time.Now())
	if h.spec.PTY && !created {
		h.redrawLocked(sizeOf(req.Size))
	}
	h.log.Info("client attached", "client", a.client)
	return a, &wire.Attached{
		ID:       h.spec.ID,
		UID:      uint32(os.Geteuid()),
		Boot:     BootMark(h.spec.ID),
		Created:  created,
		Name:     h.spec.Name,
		Secret:   secret,
		Software: h.spec.Software,
		PTY:      h.spec.PTY,
		First:    first,
		Offset:   offset,
		Live:     h.ring.Next(),
		Skip:     skip,
	}, nil
}

// replayLocked returns from where on a new client is sent the output: all that
// nobody has seen and, of what was seen, the last of it from a line's start.
func (h *Holder) replayLocked() (first, offset, skip uint64) {
	first, offset = h.shown, h.shownOffset
	if !h.spec.PTY {
		return first, offset, 0
	}
	end := h.ring.Offset(h.ring.Next())
	seen := max(h.ring.Find(end-min(history, end)), h.ring.First())
	if seen >= first || h.ring.First() > first {
		return first, offset, 0
	}
	first, offset = seen, h.ring.Offset(seen)
	if first == 1 {
		return first, offset, 0
	}
	for seq := first; seq < h.shown; {
		var b []byte
		b, seq = h.ring.Slice(seq, 1)
		f, _, err := buffer.Parse(b)
		if err != nil || f.Type != session.Stdout {
			continue
		}
		if i := bytes.IndexByte(f.Payload, '\n'); i >= 0 {
			return first, offset, skip + uint64(i) + 1
		}
		skip += uint64(len(f.Payload))
	}
	return h.shown, h.shownOffset, 0 // a line longer than the history
}

// redrawLocked has a full-screen program draw itself for a new client, whose screen
// has nothing of it.
func (h *Holder) redrawLocked(size session.Size) {
	other := size
	if other.Rows > 1 {
		other.Rows--
	} else {
		other.Rows++
	}
	h.program.Resize(other)
	h.redraws++
	time.AfterFunc(nudge, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.redraws--
		if h.program.Size() == other {
			h.program.Resize(size)
		}
	})
}

// displaceLocked takes the writer's role from a client and tells it by whom.
func (h *Holder) displaceLocked(a *attachment, by string) {
	a.displacedBy = by
	if n := len(a.queue); n > 0 {
		h.log.Info("input of a displaced client dropped", "client", a.client, "frames", n)
		a.queue = nil
	}
	h.displaced = append(h.displaced, a)
	if len(h.displaced) > maxDisplaced {
		h.displaced = h.displaced[1:]
	}
	h.writer = nil
	a.peer.Notify(session.Displaced, by)
	a.pump.Wake()
	// The client hangs up when it has read that. If it does not, we do.
	time.AfterFunc(displacedGrace, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		a.closeCarriers()
	})
}

// displacedGrace is how long a displaced client has to read that it is.
const displacedGrace = 5 * time.Second

// resumeLocked checks that a carrier is for a client of this session: the
// writer, or a displaced one that is then told so.
func (h *Holder) resumeLocked(r *wire.Resume) (*attachment, error) {
	for _, a := range h.attachmentsLocked() {
		if a.instance != r.Instance || r.ID != h.spec.ID {
			continue
		}
		if !a.verifier.Verify(r.N, r.Statement(), r.Proof) {
			return nil, fmt.Errorf("proof number %d of a resume does not hold", r.N)
		}
		return a, nil
	}
	return nil, fmt.Errorf("resume by a client that is not known")
}

// run moves frames between an attachment and one of its carriers until that
// ends.
func (h *Holder) run(a *attachment, c carrier.Carrier, ready bool) {
	err := a.pump.Run(c, ready, func(session.CarrierID) {
		a.carriers = append(a.carriers, c)
		if len(a.carriers) > maxCarriers {
			a.carriers[0].Close()
		}
		if a.closed { // since the holder has answered
			c.Close()
		}
		if a.pump.Carriers() == 1 && !h.exited {
			h.since = time.Now()
		}
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, other := range a.carriers {
		if other == c {
			a.carriers = append(a.carriers[:i:i], a.carriers[i+1:]...)
			break
		}
	}
	if h.writer == a && a.pump.Carriers() == 0 && !h.exited {
		h.since = time.Now()
	}
	h.settleLocked()
	h.changed.Broadcast()
	level := slog.LevelDebug
	if misbehaved(err) {
		level = slog.LevelWarn
	}
	h.log.Log(context.Background(), level, "carrier ended", "client", a.client, "reason", err)
}

// misbehaved reports whether a carrier was ended by what it has brought.
func misbehaved(err error) bool {
	var protocol *session.ProtocolError
	return errors.As(err, &protocol) || errors.Is(err, pump.ErrCompressed) ||
		errors.Is(err, buffer.ErrChecksum) || errors.Is(err, buffer.ErrTooLong)
}

// receivedLocked deals with what a client's carriers have brought.
func (h *Holder) receivedLocked(a *attachment) {
	frames := a.peer.Take()
	if h.writer != a {
		return
	}
	for _, d := range frames {
		if d.Lost == nil {
			h.handleUrgent(d.Frame)
		}
	}
	a.queue = session.Queue(a.queue, frames...)
	h.progressLocked(a)
	for _, n := range a.peer.TakeNotices() {
		switch n.Code {
		case session.Leaving:
			h.leaveLocked(a)
		case session.ReaderGone:
			h.closeOutput([]byte(n.Text))
		}
	}
}

const (
	// present is how much of a terminal's output is not skipped: where the prompt is.
	present = 1 << 10

	// skipGrace is what a program has to act on the input before a Skip. What it
	// prints meanwhile is read, wherever the client is, to get to the prompt.
	skipGrace = 10 * time.Millisecond
)

// skipLocked brings a client to the present, in a moment. Only a terminal's output
// may be left out, and not the program's end.
func (h *Holder) skipLocked(a *attachment) {
	if !h.spec.PTY || h.skipping == a {
		return
	}
	h.skipping = a
	h.changed.Broadcast()
	time.AfterFunc(skipGrace, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.skipping != a {
			return
		}
		h.skipping = nil
		if h.writer != a || h.ending {
			return
		}
		last := uint64(present)
		if h.exited {
			last = max(last, h.ring.Offset(h.ring.Next())-h.ring.Offset(h.exit))
		}
		a.peer.Skip(last)
		a.pump.Wake()
		if h.redraws == 0 { // or else it is about to, and its size is not its own
			h.redrawLocked(h.program.Size())
		}
	})
}

// closeCarriers closes those that there are, and those to come.
func (a *attachment) closeCarriers() {
	a.closed = true
	for _, c := range a.carriers {
		c.Close()
	}
}

// clients names the client if it is there.
func (a *attachment) clients() []string {
	if a.pump.Carriers() == 0 {
		return nil
	}
	return []string{a.client}
}
