//go:build linux

package work

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/quicterm/quicterm/bench/measure"
	qtclient "github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/holder"
	"github.com/quicterm/quicterm/quicterm/holder/programtest"
	"github.com/quicterm/quicterm/quicterm/rundir"
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
	kill, err := wire.New(&wire.Kill{})
	if err != nil {
		t.Fatal(err)
	}
	client := newClient(t, h)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	t.Cleanup(cancel)
	for n := range w.Sessions {
		launch := wire.Launch{ID: wire.SessionID{byte(n >> 8), byte(n)}, Name: fmt.Sprintf("idle%d", n), Buffer: 1 << 20, PTY: true, ExitedTTL: time.Hour}
		socket, err := holder.Listen(rundir.Base(h.Path("run")), holder.SocketName(launch.ID))
		if err != nil {
			t.Fatal(err)
		}
		keeper := holder.New(launch, programtest.NewEcho(true), slog.New(slog.DiscardHandler))
		wg.Go(func() {
			var serving sync.WaitGroup
			serving.Go(func() { keeper.Serve(socket) })
			keeper.Run()
			socket.Close()
			serving.Wait()
		})
		t.Cleanup(func() { keeper.Handle(&wire.Open{}, kill) })
		s, err := client.Attach(ctx, &wire.Attach{Mode: wire.ModeAttach, Session: launch.ID.String(), PTY: true}, qtclient.Streams{})
		if err != nil {
			t.Fatalf("session %d: %v", n, err)
		}
		wg.Go(func() { s.Run(ctx) })
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
