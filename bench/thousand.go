//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm"
	"github.com/quicterm/quicterm/quicterm/holder"
	"github.com/quicterm/quicterm/quicterm/rundir"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// measureThousand looks at the daemon's time while it has a thousand sessions of
// which nothing moves. Their holders and clients are in this process; the daemon
// is a real one.
func measureThousand(m *measurement) (string, bool) {
	const sessions = 1000
	h := m.host(map[string]string{"max_sessions_per_user": strconv.Itoa(sessions), "log_level": `"info"`})
	kill, err := wire.New(&wire.Kill{})
	if err != nil {
		m.Fatal(err)
	}
	client := newClient(m, h, configs.DefaultClient())
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	m.Cleanup(wg.Wait)
	m.Cleanup(cancel)
	for n := range sessions {
		spec := wire.Spec{ID: wire.SessionID{byte(n >> 8), byte(n)}, Name: strconv.Itoa(n + 1), Buffer: 1 << 20, PTY: true, ExitedTTL: time.Hour}
		socket, err := holder.Listen(rundir.Base(h.Path("run")), holder.SocketName(spec.ID))
		if err != nil {
			m.Fatal(err)
		}
		program := newIdleProgram()
		keeper := holder.New(spec, program, slog.New(slog.DiscardHandler))
		wg.Go(func() {
			var serving sync.WaitGroup
			serving.Go(func() { keeper.Serve(socket) })
			keeper.Run()
			socket.Close()
			serving.Wait()
		})
		m.Cleanup(func() { keeper.Handle(&wire.Open{}, kill) })
		s, err := client.Attach(ctx, &wire.Attach{Mode: wire.ModeAttach, Session: spec.ID.String(), PTY: true}, quicterm.Streams{})
		if err != nil {
			m.Fatalf("session %d: %v", n, err)
		}
		wg.Go(func() { s.Run(ctx) })
	}
	time.Sleep(30 * time.Second) // what came with their logins
	const window = time.Minute
	before := cpuTime(m, h.Daemon.Process.Pid)
	time.Sleep(window)
	share := float64(cpuTime(m, h.Daemon.Process.Pid)-before) / float64(window)
	return fmt.Sprintf("%.1f %% of a core, %.0f KB each",
		100*share, float64(rss(m, h.Daemon.Process.Pid))/sessions/1000), share < 0.05
}

// cpuTime returns how long a process has computed.
func cpuTime(m *measurement, pid int) time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		m.Fatal(err)
	}
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	user, _ := strconv.Atoi(string(fields[11]))
	system, _ := strconv.Atoi(string(fields[12]))
	const tick = 10 * time.Millisecond // USER_HZ, proc(5)
	return time.Duration(user+system) * tick
}

// An idleProgram is a program on a terminal that does nothing until it is hung up.
type idleProgram struct {
	in, out  *io.PipeReader
	stdin    *io.PipeWriter
	stdout   *io.PipeWriter
	hangedUp chan struct{}
	once     sync.Once
}

func newIdleProgram() *idleProgram {
	p := &idleProgram{hangedUp: make(chan struct{})}
	p.in, p.stdin = io.Pipe()
	p.out, p.stdout = io.Pipe()
	return p
}

func (p *idleProgram) Terminal() bool            { return true }
func (p *idleProgram) Stdin() io.WriteCloser     { return p.stdin }
func (p *idleProgram) Stdout() io.ReadCloser     { return p.out }
func (p *idleProgram) Stderr() io.ReadCloser     { return nil }
func (p *idleProgram) Resize(session.Size) error { return nil }
func (p *idleProgram) Size() session.Size        { return session.Size{} }
func (p *idleProgram) Signal(syscall.Signal)     {}
func (p *idleProgram) Hangup(syscall.Signal)     { p.once.Do(func() { close(p.hangedUp) }) }
func (p *idleProgram) Wait() byte                { <-p.hangedUp; p.stdout.Close(); return 0 }
func (p *idleProgram) Close()                    { p.in.Close(); p.out.Close() }
