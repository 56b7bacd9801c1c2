//go:build linux || darwin

// Package holder is the process that keeps a session: it owns the program and
// its terminal, the log of its output and the state of its client, and outlives
// the daemon that started it. Daemons reach it by a unix socket and relay what
// clients say.
package holder

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// history is how many bytes of output that somebody has seen are kept
	// for the next client of a terminal: a few screens, and then some.
	history = 256 << 10

	// stallLimit is how long a client may be silent about output that it
	// owes an ack for, and still be believed to be there.
	stallLimit = 15 * time.Second

	// inputWindow is how many bytes of frames wait for a program that does not
	// read its input.
	inputWindow = 1 << 20

	// reorderWindow is how many frames of input may come out of order.
	reorderWindow = 100
)

// A Holder keeps one session.
type Holder struct {
	spec    wire.Spec
	log     *slog.Logger
	created time.Time
	program Program

	mu      sync.Mutex
	changed *sync.Cond // of mu: there is input, or room for output, or the end
	ring    *buffer.Ring

	// What clients have dealt with, as far as is known exactly.
	shown, shownOffset uint64

	// What of a terminal's output was read.
	reading struct {
		waits bool // some of it is not in the ring yet
		last  time.Time
	}

	skipping *attachment // it is brought to the present, or nil
	redraws  int         // that are under way: the terminal has another size meanwhile

	attached  bool // somebody was, once
	writer    *attachment
	displaced []*attachment // the latest ones, to be told by whom
	since     time.Time     // of the present phase
	exited    bool          // the exit frame was put into the ring
	exit      uint64        // its number
	killed    bool          // nobody wants the session any more
	expired   bool          // nobody was there for too long, and it was hung up
	status    byte
	ending    bool
	end       chan struct{} // closed when ending
	stalled   *time.Timer   // wakes output that waits for a client that is not there
	wg        sync.WaitGroup
}

// New returns the holder of a session whose program has just been started.
func New(spec wire.Spec, p Program, log *slog.Logger) *Holder {
	now := time.Now()
	h := &Holder{
		spec:    spec,
		log:     log.With("session", spec.Name, "id", spec.ID.String()[:8]),
		created: now,
		since:   now,
		program: p,
		ring:    buffer.NewRing(spec.Buffer),
		shown:   1,
		end:     make(chan struct{}),
	}
	h.changed = sync.NewCond(&h.mu)
	h.stalled = time.AfterFunc(time.Hour, func() {
		h.mu.Lock() // or it may come between a look at the time and the wait
		defer h.mu.Unlock()
		h.changed.Broadcast()
	})
	h.stalled.Stop()
	return h
}

// Run keeps the session until it is over: until its program has ended and somebody
// has seen how, or nobody will. It returns when nothing of it is left.
func (h *Holder) Run() {
	h.wg.Go(h.inputLoop)
	h.wg.Go(h.programLoop)
	h.wg.Go(h.watchAge)
	<-h.end
	h.program.Close()
	h.wg.Wait()
	h.log.Info("session is over", "status", h.status)
}

// finishLocked lets Run return.
func (h *Holder) finishLocked(why string) {
	if h.ending {
		return
	}
	h.log.Info("ending session", "reason", why)
	h.ending = true
	close(h.end)
	h.changed.Broadcast()
	for _, a := range h.attachmentsLocked() {
		a.closeCarriers()
	}
}

// attachmentsLocked returns the writer, if there is one, and those that it has
// displaced.
func (h *Holder) attachmentsLocked() []*attachment {
	if h.writer == nil {
		return h.displaced
	}
	return append([]*attachment{h.writer}, h.displaced...)
}

// appendLocked adds a frame to the log, when there is room for it. What would
// push out the program's end, from those that it has left behind, is dropped.
func (h *Holder) appendLocked(t buffer.Type, payload []byte) (seq uint64) {
	for h.mustWaitLocked(len(payload)) {
		h.changed.Wait()
	}
	if h.exited && h.ring.Room() < max(len(payload), 1) {
		return 0
	}
	seq = h.ring.Append(t, payload)
	if a := h.writer; a != nil {
		a.peer.Appended(time.Now())
		a.pump.Wake()
	}
	return seq
}

// mustWaitLocked reports whether n bytes of output have to wait. Without a
// terminal they do while they would push out of the ring what has not arrived:
// the program waits, as at the end of any full pipe; but one that was hung up
// waits for nobody who is not there, or it might never end. With one, they do while a
// client is there and has much to do; without a client a program never waits.
func (h *Holder) mustWaitLocked(n int) bool {
	if h.ending {
		return false
	}
	if !h.spec.PTY {
		return h.ring.Room() < max(n, 1) && (h.presentLocked() || !h.killed && !h.expired)
	}
	a := h.writer
	if !h.presentLocked() || h.skipping == a || a.peer.Outstanding() <= h.backlogLocked() {
		return false
	}
	left := stallLimit - time.Since(a.peer.Waiting())
	if left <= 0 {
		return false
	}
	h.stalled.Reset(left)
	return true
}

// backlogLocked returns how many bytes of a terminal's output may wait for a
// client that is there, before the program has to: a little more than keeps the
// path busy. What is typed to stop a flood has effect when all of it has arrived.
func (h *Holder) backlogLocked() int {
	appetite := h.writer.peer.Appetite(time.Now())
	return min(appetite+appetite/16, max(h.spec.Buffer, buffer.MinCapacity)/2)
}

// progressLocked takes note of what the writer has dealt with.
func (h *Holder) progressLocked(a *attachment) {
	consumed := a.peer.Consumed()
	if consumed > h.shown && consumed >= h.ring.First() {
		h.shown, h.shownOffset = consumed, h.ring.Offset(consumed)
	}
	keep := consumed
	if h.spec.PTY {
		keep = h.ring.Find(h.shownOffset - min(history, h.shownOffset))
	}
	h.ring.Release(min(keep, consumed))
	if h.exited && consumed > h.exit {
		h.finishLocked("its end was seen")
	}
	h.changed.Broadcast()
}

// presentLocked reports whether the writer is there.
func (h *Holder) presentLocked() bool { return h.writer != nil && h.writer.pump.Carriers() > 0 }

// phaseLocked returns where the session is in its life.
func (h *Holder) phaseLocked() wire.Phase {
	switch {
	case h.exited:
		return wire.PhaseExited
	case h.presentLocked():
		return wire.PhaseAttached
	}
	return wire.PhaseDetached
}

// stateLocked describes the session.
func (h *Holder) stateLocked() (*wire.State, error) {
	size := h.program.Size()
	info := wire.Info{
		ID:      h.spec.ID,
		Name:    h.spec.Name,
		Phase:   h.phaseLocked(),
		Since:   h.since.Unix(),
		Created: h.created.Unix(),
		PTY:     h.spec.PTY,
		Cols:    size.Cols,
		Rows:    size.Rows,
		Command: h.spec.Command,
		Status:  h.status,
	}
	if h.writer != nil {
		info.Clients = h.writer.clients()
	}
	raw, err := wire.EncodeInfo(info)
	if err != nil {
		return nil, fmt.Errorf("describe session: %w", err)
	}
	return &wire.State{
		Memory:  uint64(h.ring.Memory()),
		Phase:   info.Phase,
		Since:   h.since.UnixNano(),
		Visible: true,
		PTY:     h.spec.PTY,
		Name:    h.spec.Name,
		Info:    raw,
	}, nil
}

// leaveLocked forgets a client that has said that it will not come back.
func (h *Holder) leaveLocked(a *attachment) {
	if h.writer != a {
		return
	}
	h.log.Info("client left", "client", a.client)
	a.closeCarriers()
	h.writer = nil
	h.since = time.Now()
	if !h.spec.PTY && !h.killed { // nobody else can have it
		h.killed = true
		h.hangup()
	}
	h.settleLocked()
	h.changed.Broadcast()
}

// settleLocked ends a session whose program has ended and that nobody will come
// to see.
func (h *Holder) settleLocked() {
	if h.exited && !h.presentLocked() && (h.killed || h.expired && h.writer == nil) {
		h.finishLocked("hung up, and nobody is there to see it")
	}
}

// sizeOf converts between two forms of a terminal's size.
func sizeOf(v [4]uint16) session.Size {
	return session.Size{Cols: v[0], Rows: v[1], XPixel: v[2], YPixel: v[3]}
}
