//go:build linux || darwin

// Package holdertest runs holders in memory, for tests of what uses them: real holders of programs in memory, which
// work on the virtual time of package synctest, where processes and sockets do not.
package holdertest

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/carriertest"
	"github.com/quicterm/quicterm/migrate/carrier/pipe"
	"github.com/quicterm/quicterm/quicterm/holder"
	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/machine/enrolled"
	"github.com/quicterm/quicterm/quicterm/machine/memory"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Holders has the holders of one account, that of this process. It implements
// [monitor.Holders]. Wait must be called before the test ends.
//
// [monitor.Holders]: https://pkg.go.dev/github.com/quicterm/quicterm/quicterm/monitor#Holders
type Holders struct {
	// Change changes what new sessions are started with, before the first of them. Nil changes nothing.
	Change func(*wire.Launch)

	// Log has what holders log. Nil is for none.
	Log slog.Handler

	// Free is what holders know of the memory of their machine. Nil is for plenty.
	Free func() (memory.State, error)

	newProgram func(*wire.Launch) holder.Program

	mu   sync.Mutex
	byID map[wire.SessionID]*holder.Holder
	lost map[wire.SessionID]chan struct{} // closed when the holder is killed
	asks int
	away error // of every request, or nil
	wg   sync.WaitGroup
}

// New returns an account without holders. A new session runs the program that newProgram returns.
func New(newProgram func(*wire.Launch) holder.Program) *Holders {
	return &Holders{newProgram: newProgram, byID: make(map[wire.SessionID]*holder.Holder), lost: make(map[wire.SessionID]chan struct{})}
}

// Memory returns nothing: these holders are not processes.
func (h *Holders) Memory() map[uint32]uint64 { return nil }

// Sessions returns the ids of all sessions.
func (h *Holders) Sessions(uint32) []wire.SessionID {
	h.mu.Lock()
	defer h.mu.Unlock()
	var ids []wire.SessionID
	for id := range h.byID {
		ids = append(ids, id)
	}
	return ids
}

// Asks returns how often a holder was asked.
func (h *Holders) Asks() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asks
}

// Fail makes every request fail with err until it is called with nil: fs.ErrNotExist is
// that of a holder whose socket was removed.
func (h *Holders) Fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.away = err
}

// Ask asks a holder.
func (h *Holders) Ask(
	_ context.Context, _ uint32, id wire.SessionID, open *wire.Open, request wire.Message,
) (wire.Message, error) {
	answer, _, err := h.handle(id, open, request)
	return answer, err
}

// Records does tasks with the enrolled keys of an account whose home is temporary; others have none. No session leaves
// a record.
func (h *Holders) Records(_ context.Context, a *account.Account, launch *wire.Launch) (wire.Message, error) {
	if launch.Keys != nil && !strings.HasPrefix(a.Home, os.TempDir()) {
		return wire.New(&wire.Keys{})
	}
	if launch.Keys != nil {
		answer, err := enrolled.Do(launch.Keys)
		if err != nil {
			answer = &wire.Error{Text: err.Error()}
		}
		return wire.New(answer)
	}
	return wire.New(&wire.Records{})
}

// Accounts returns the account of this process.
func (h *Holders) Accounts() []uint32 { return []uint32{uint32(os.Getuid())} }

// Await waits for the end of a session.
func (h *Holders) Await(ctx context.Context, uid uint32, id wire.SessionID) (wire.Message, error) {
	h.mu.Lock()
	keeper, lost := h.byID[id], h.lost[id]
	h.mu.Unlock()
	if keeper == nil {
		return wire.Message{}, fs.ErrNotExist
	}
	select {
	case <-keeper.Done():
	case <-lost:
		return wire.Message{}, io.EOF
	case <-ctx.Done():
		return wire.Message{}, ctx.Err()
	}
	inspect, err := wire.New(&wire.Inspect{AtEnd: true})
	if err != nil {
		return inspect, err
	}
	answer, _, err := keeper.Handle(&wire.Open{}, inspect)
	return answer, err
}

// Carry asks a holder, and connects it to the carrier that it returns.
func (h *Holders) Carry(
	_ context.Context, _ uint32, id wire.SessionID, open *wire.Open, request wire.Message, datagrams bool,
) (wire.Message, carrier.Carrier, error) {
	answer, carry, err := h.handle(id, open, request)
	if err != nil {
		return answer, nil, err
	}
	ours, theirs := carriertest.Pair()
	if !datagrams {
		x, y := net.Pipe()
		ours, theirs = pipe.New(x), pipe.New(y)
	}
	if carry == nil {
		theirs.Close() // as a holder that refuses
		return answer, ours, nil
	}
	h.wg.Go(func() { carry(theirs) })
	return answer, ours, nil
}

func (h *Holders) handle(
	id wire.SessionID, open *wire.Open, request wire.Message,
) (wire.Message, func(carrier.Carrier), error) {
	h.mu.Lock()
	keeper, away := h.byID[id], h.away
	h.asks++
	h.mu.Unlock()
	if away != nil {
		return wire.Message{}, nil, away
	}
	if keeper == nil {
		return wire.Message{}, nil, fs.ErrNotExist
	}
	return keeper.Handle(open, request)
}

// Start starts the holder of a new session. It ends with its session.
func (h *Holders) Start(ctx context.Context, _ *account.Account, launch *wire.Launch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byID[launch.ID] != nil {
		return fmt.Errorf("session %s: %w", launch.ID, fs.ErrExist)
	}
	if h.Change != nil {
		h.Change(launch)
	}
	log := h.Log
	if log == nil {
		log = slog.DiscardHandler
	}
	keeper := holder.New(*launch, h.newProgram(launch), slog.New(log))
	keeper.FitMemory(h.Free)
	h.byID[launch.ID], h.lost[launch.ID] = keeper, make(chan struct{})
	h.wg.Go(func() {
		keeper.Run()
		keeper.Forget()
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.byID, launch.ID)
	})
	return nil
}

// Lose ends the holder of a session as SIGKILL does: it answers nobody any more, and its program sees its terminal or its
// pipes closed. The caller has closed its connections.
func (h *Holders) Lose(id wire.SessionID) {
	h.mu.Lock()
	keeper := h.byID[id]
	delete(h.byID, id)
	if keeper != nil {
		close(h.lost[id])
	}
	h.mu.Unlock()
	if keeper == nil {
		return
	}
	kill, err := wire.New(&wire.Kill{})
	if err != nil {
		panic(err) // a Kill without a name is always the same
	}
	h.wg.Go(func() {
		for {
			keeper.Handle(&wire.Open{Client: "test"}, kill) // once its program has ended, this ends it
			select {
			case <-keeper.Done():
				return
			case <-time.After(time.Second):
			}
		}
	})
}

// Kill kills all sessions.
func (h *Holders) Kill() {
	kill, err := wire.New(&wire.Kill{})
	if err != nil {
		panic(err) // a Kill without a name is always the same
	}
	for _, id := range h.Sessions(0) {
		h.handle(id, &wire.Open{Client: "test"}, kill)
	}
}

// Wait waits until all sessions have ended.
func (h *Holders) Wait() { h.wg.Wait() }
