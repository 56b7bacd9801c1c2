//go:build linux

package work

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/quicterm/quicterm/bench/barestream"
	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/quicterm/auth"
	qtclient "github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Replay takes over a session that has printed nearly as much as its ring keeps. It yields
// "rate", in MB/s from the first byte of that to the last, and "of bare stream", the
// share of what one QUIC stream carries between processes. Both clients are in this process.
type Replay struct {
	ownSessions
	Times int
}

const (
	// replaySize is less than the ring of a session, which has 64 MiB.
	replaySize = 60 << 20

	// enough is the most that is expected of the bare stream, in bytes a second.
	enough = 250e6
)

func (w Replay) Run(j *Job) []Figure {
	rate := Figure{Metric: "rate", Unit: "MB/s"}
	share := Figure{Metric: "of bare stream", Unit: "x", Portable: true}
	j.Begin()
	best, bare := 0.0, 0.0
	for n := range w.Times {
		speed := replay(j.T, j.Host, fmt.Sprintf("full%d", n))
		rate.Values = append(rate.Values, speed/1e6)
		best = max(best, speed)
		bare = max(bare, barestream.Rate(j.T, exec.Command(Executable(j.T), "barestream"), replaySize))
	}
	j.End()
	share.Values = []float64{best / min(bare, enough)}
	share.Note = fmt.Sprintf("the bare stream carries %.0f MB/s, of which at most %.0f count", bare/1e6, enough/1e6)
	return []Figure{rate, share}
}

// replay fills the ring of a session and takes it over.
func replay(t *measure.T, h *rig.Host, name string) (bytesPerSecond float64) {
	fillRing(t, h, name, replaySize)
	return replaySize / takeOver(t, h, name, replaySize).took.Seconds()
}

// fillRing opens a session, leaves it, and lets it print. It returns how long the program was at that.
func fillRing(t *measure.T, h *rig.Host, name string, size int) time.Duration {
	x := h.Shell(h.Addr, "-s", name)
	folder := h.Path(name)
	x.Run(fmt.Sprintf("mkdir %s; cd %s; mkfifo go done; stty -opost", folder, folder), "mkfifo")
	x.Send(fmt.Sprintf("read x < go; s=$(date +%%s%%N); head -c %d /dev/zero | tr '\\0' x; "+
		"echo $(($(date +%%s%%N) - s)) > done; cat\r~.", size))
	x.Exit()
	out, err := h.QT("connect", fmt.Sprintf("cd %s; echo > go; cat done", folder)).Output()
	took, invalid := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err := errors.Join(err, invalid); err != nil {
		t.Fatal(err)
	}
	return time.Duration(took)
}

// takeOver attaches to a session until a client in this process has a number of bytes.
func takeOver(t *measure.T, h *rig.Host, name string, size int) *stopwatch {
	const limit = 2 * time.Minute
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	all := &stopwatch{size: size, done: cancel}
	session, err := newClient(t, h).Attach(ctx, &wire.Attach{Mode: wire.ModeAttach, Session: name, PTY: true},
		qtclient.Streams{Stdout: all})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.Run(ctx); !errors.Is(err, qtclient.ErrLeft) {
		t.Fatal(err)
	}
	if all.took == 0 {
		t.Fatalf("%d of %d bytes came within %v", all.written, size, limit)
	}
	return all
}

// A stopwatch takes the time from the first to the last byte that is written to it.
type stopwatch struct {
	size, written int
	done          func()
	start         time.Time
	took          time.Duration
}

func (s *stopwatch) Write(b []byte) (int, error) {
	if s.written == 0 {
		s.start = time.Now()
	}
	if s.written += len(b); s.written >= s.size && s.took == 0 {
		s.took = time.Since(s.start)
		s.done()
	}
	return len(b), nil
}

// newClient returns a client of a host's daemon in this process.
func newClient(t *measure.T, h *rig.Host) *qtclient.Client {
	c, err := LibraryClient(h.Addr, h.Dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// LibraryClient returns a client of a daemon at an address, with the key in a host's folder.
func LibraryClient(addr netip.AddrPort, dir string) (*qtclient.Client, error) {
	cfg, err := libraryConfig(addr, dir)
	if err != nil {
		return nil, err
	}
	return qtclient.New(cfg), nil
}

// libraryConfig returns the configuration of LibraryClient.
func libraryConfig(addr netip.AddrPort, dir string) (cfg qtclient.Config, err error) {
	key, err := auth.IdentityFile(filepath.Join(dir, "id"), nil)
	if err != nil {
		return cfg, err
	}
	known, err := auth.LoadKnownHosts("127.0.0.1", addr.Port(), []string{filepath.Join(dir, "known_hosts")})
	if err != nil {
		return cfg, err
	}
	me, err := user.Current()
	if err != nil {
		return cfg, err
	}
	return qtclient.Config{
		Log:       slog.New(slog.DiscardHandler),
		Resolve:   func(context.Context) ([]netip.AddrPort, error) { return []netip.AddrPort{addr}, nil },
		CheckHost: known.Check,
		KeyTypes:  known.KeyTypes(),
		User:      me.Username,
		Keys:      []*auth.UserKey{key},
	}, nil
}
