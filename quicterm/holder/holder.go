//go:build linux || darwin

package holder

import (
	"log/slog"
	"sync"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/quicterm/holder/description"
	"github.com/quicterm/quicterm/quicterm/holder/persist"
	"github.com/quicterm/quicterm/quicterm/holder/sizing"
	"github.com/quicterm/quicterm/quicterm/holder/typing"
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
	answers   []byte       // to the program's queries, for its input
	clients   clients
	ownership sizing.Ownership
	reading   reading
	pressure  pressure
	emulator  emulator
	hints     hints
	typing    typing.Queue
	life      lifetime
	events    happenings
	calls     calls
	ports     ports
	keeper    *persist.Keeper // nil if nothing is kept on disk

	description *description.Folder // of the terminal, or nil

	// offer makes an ssh agent that of the session, or none with zeros. It is nil if the session has no SSH_AUTH_SOCK.
	offer func(wire.AgentID)

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
		boot:    persist.CurrentBoot().Mark(launch.ID),
		program: p,
		denials: floodlog.New(1),
		ring:    ring,
		clients: newClients(ring, &launch),
		life:    lifetime{since: now, changed: make(chan struct{}, 1), requested: make(map[syscall.Signal]bool)},
		end:     make(chan struct{}),
	}
	h.events = newHappenings(h)
	h.calls = newCalls(h)
	h.ports.h = h
	h.hints = newHints(h, now)
	h.keeper = newKeeper(h)
	h.emulator = newEmulator(h)
	h.pressure = newPressure(h)
	if launch.PTY {
		h.ownership = sizing.Ownership{Owner: 1, Size: launch.Size}
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
		go h.keeper.Run() // it may end after Run if the disk hangs
	}
	<-h.end
	h.program.Close()
	h.running.Wait()
	h.log.Info("session is over", "status", h.life.exit.Status)
}

// Forget removes what the disk has of a session whose Run has returned. It waits for a slow disk.
func (h *Holder) Forget() { h.keeper.Remove() }
