//go:build linux

package work

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/rig"
	qtclient "github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/holder"
	"github.com/quicterm/quicterm/quicterm/holder/programtest"
	"github.com/quicterm/quicterm/quicterm/holder/socket"
	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Thousand opens more sessions, at which nothing happens, and yields "daemon share", how
// much of a core the daemon takes then, and "daemon rss", its memory in MiB for each. The
// holders and clients of these sessions are in this process.
type Thousand struct {
	ownSessions
	Sessions int
}

func (w Thousand) Run(j *Job) []Figure {
	const (
		settle = 30 * time.Second // until logins have no more effects
		window = time.Minute
	)
	t, h := j.T, j.Host
	daemon := h.Processes()
	inside := newInside(t, h, newClient(t, h))
	for range w.Sessions {
		inside.open(qtclient.Streams{})
	}
	time.Sleep(settle)
	j.Begin()
	before := measure.CPUTime(t, daemon...)
	time.Sleep(window)
	share := float64(measure.CPUTime(t, daemon...)-before) / float64(window)
	rss := float64(daemonRSS(t, daemon)) / float64(w.Sessions)
	j.End()
	return []Figure{one("daemon share", "%", 100*share), one("daemon rss", "MiB", rss/(1<<20))}
}

// An inside opens sessions with a daemon whose holders and clients are in this process. All ends
// with the measurement.
type inside struct {
	t      *measure.T
	host   *rig.Host
	client *qtclient.Client
	ctx    context.Context
	kill   wire.Message
	wg     sync.WaitGroup
	opened int
}

func newInside(t *measure.T, h *rig.Host, client *qtclient.Client) *inside {
	kill, err := wire.New(&wire.Kill{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	i := &inside{t: t, host: h, client: client, ctx: ctx, kill: kill}
	t.Cleanup(i.wg.Wait)
	t.Cleanup(cancel)
	return i
}

// open opens a session with a program that prints what it reads.
func (i *inside) open(streams qtclient.Streams) *qtclient.Session {
	n := i.opened
	i.opened++
	launch := wire.Launch{ID: wire.SessionID{byte(n >> 8), byte(n)}, Name: fmt.Sprintf("inside%d", n), Buffer: 1 << 20,
		PTY: true, ExitedTTL: time.Second}
	listening, err := socket.Listen(rundir.Base(i.host.Path("run")), socket.Name(launch.ID))
	if err != nil {
		i.t.Fatal(err)
	}
	keeper := holder.New(launch, programtest.NewEcho(true), slog.New(slog.DiscardHandler))
	i.wg.Go(func() {
		var serving sync.WaitGroup
		serving.Go(func() { keeper.Serve(listening) })
		keeper.Run()
		listening.Close()
		serving.Wait()
	})
	i.t.Cleanup(func() { keeper.Handle(&wire.Open{}, i.kill) })
	s, err := i.client.Attach(i.ctx, &wire.Attach{Mode: wire.ModeAttach, Session: launch.ID.String(), PTY: true}, streams)
	if err != nil {
		i.t.Fatalf("session %d: %v", n, err)
	}
	i.wg.Go(func() { s.Run(i.ctx) })
	return s
}
