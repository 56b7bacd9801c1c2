//go:build linux || darwin

package holder

import (
	"context"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/quicterm/machine/floodlog"
	"github.com/quicterm/quicterm/quicterm/session/gate"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A Holder keeps one session.
type Holder struct {
	launch   wire.Launch
	software string // name and version, for Report
	log      *slog.Logger
	created  time.Time
	boot     wire.BootMark
	program  Program

	// gate guards all below. It changes with input to give to the program, with room
	// for output, and at the end.
	gate      gate.Gate
	ring      *buffer.Ring // the log of the program's output
	clients   clients
	ownership ownership
	reading   reading
	pressure  pressure
	emulator  emulator
	hints     hints
	life      lifetime
	keeper    *keeper // nil if nothing is kept on disk

	denials *floodlog.Log // of resumes: who knows the session's id can cause any number of them

	end     chan struct{}  // closed when the session is over
	running sync.WaitGroup // goroutines that Run waits for
}

// New returns the holder of a session whose program was just started. A nil logger
// discards.
func New(launch wire.Launch, p Program, log *slog.Logger) *Holder {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	now := time.Now()
	ring := buffer.NewRing(launch.Buffer)
	h := &Holder{
		launch:  launch,
		log:     log.With("session", launch.Name, "id", launch.ID.String()[:8]),
		created: now,
		boot:    CurrentBoot().Mark(launch.ID),
		program: p,
		denials: floodlog.New(1),
		ring:    ring,
		clients: newClients(ring, &launch),
		life:    lifetime{since: now, changed: make(chan struct{}, 1), requested: make(map[syscall.Signal]bool)},
		end:     make(chan struct{}),
	}
	h.hints = newHints(h)
	h.keeper = newKeeper(h)
	h.emulator = newEmulator(h)
	h.pressure = newPressure(h)
	if launch.PTY {
		h.ownership = ownership{owner: 1, size: launch.Size}
		h.logLocked(wire.Resize, h.sizingLocked().Append(nil))
		// ^C and ^\ are typed
		h.life.requested[syscall.SIGINT], h.life.requested[syscall.SIGQUIT] = true, true
	}
	return h
}

// Done returns a channel that is closed when the session is over.
func (h *Holder) Done() <-chan struct{} { return h.end }

// Run keeps the session until it is over. When it returns, no goroutine and no timer
// of the session is left except carriers, which the callers of Handle run, and the writer
// of its record: Forget waits for that. The carriers are closed.
func (h *Holder) Run() {
	h.running.Go(h.inputLoop)
	h.running.Go(h.programLoop)
	h.running.Go(h.limitLoop)
	if h.launch.PTY {
		h.running.Go(func() { h.emulator.loop(h.end) })
		h.running.Go(func() { h.hints.loop(h.end) })
	}
	if h.pressure.read != nil {
		h.running.Go(func() { h.pressure.loop(h.end) })
	}
	if h.keeper != nil {
		go h.keeper.loop() // it may end after Run if the disk hangs
	}
	<-h.end
	h.program.Close()
	h.running.Wait()
	h.log.Info("session is over", "status", h.life.exit.Status)
}

// Forget removes what the disk has of a session whose Run has returned. It waits for a slow disk.
func (h *Holder) Forget() { h.keeper.remove() }

func (h *Holder) finishLocked(reason string) {
	if h.life.over {
		return
	}
	h.log.Info("ending session", "reason", reason)
	h.life.over = true
	close(h.end)
	h.gate.Changed()
	h.clients.close()
}

// afterLocked calls f, with the gate locked, when d has passed, unless the session is
// over by then.
func (h *Holder) afterLocked(d time.Duration, f func()) {
	if h.life.over {
		return
	}
	h.running.Go(func() {
		select {
		case <-h.end:
			return
		case <-time.After(d):
		}
		h.gate.Lock()
		defer h.gate.Unlock()
		if !h.life.over {
			f()
		}
	})
}

// wake wakes the loop that waits for a channel, which buffers one.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// appendLocked adds a frame to the log and returns its number. It blocks while there is
// no room. After the program's end it drops what would push the Exit frame out: output
// of processes that the program has left behind.
func (h *Holder) appendLocked(t buffer.Type, payload []byte) (seq uint64) {
	h.awaitRoomLocked(len(payload))
	if h.life.exited && h.ring.Room() < max(len(payload), 1) {
		return 0
	}
	return h.logLocked(t, payload)
}

// logLocked adds a frame to the log and returns its number. It waits for nothing.
func (h *Holder) logLocked(t buffer.Type, payload []byte) (seq uint64) {
	seq = h.ring.Append(t, payload)
	h.pressure.grownLocked()
	now := time.Now()
	h.clients.appended(now)
	h.lookForOwnerLocked(now)
	h.skipFloodLocked(now)
	h.emulator.drawLaterLocked()
	return seq
}

// awaitRoomLocked blocks while n bytes of output must wait for the clients or the emulator.
func (h *Holder) awaitRoomLocked(n int) {
	wait := func() time.Duration {
		if h.life.over {
			return 0
		}
		if h.emulator.awaitsDrawingLocked() {
			return forever
		}
		return h.clients.wait(time.Now(), n, h.life.hungUp)
	}
	for {
		d := wait()
		if d == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), d)
		h.gate.Wait(ctx, func() bool { return wait() == 0 })
		cancel()
	}
}
