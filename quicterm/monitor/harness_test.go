//go:build linux || darwin

package monitor

import (
	"bytes"
	"context"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	_ "github.com/quicterm/quicterm/bench/bubble"
	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/holder"
	"github.com/quicterm/quicterm/quicterm/holder/holdertest"
	"github.com/quicterm/quicterm/quicterm/holder/programtest"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/monitor/processes"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A notebook keeps what is written to it, for any goroutine to read.
type notebook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (n *notebook) Write(b []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.buf.Write(b)
}

func (n *notebook) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.buf.String()
}

// await waits until words have been written a number of times.
func (n *notebook) await(t *testing.T, words string, times int) {
	t.Helper()
	for start := time.Now(); strings.Count(n.String(), words) < times; time.Sleep(time.Millisecond) {
		if time.Since(start) > 20*time.Second {
			t.Fatalf("no %q, %d times, in:\n%s", words, times, n)
		}
	}
}

// A host is a machine with a monitor without a network, whose holders are in memory.
type host struct {
	t        *testing.T
	settings *configs.Server
	holders  *holdertest.Holders
	server   *Monitor
}

// onHost calls f with a host, on virtual time.
func onHost(t *testing.T, f func(h *host)) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{t: t, settings: configs.DefaultServer()}
		h.settings.StateDir, h.settings.RuntimeDir = t.TempDir(), t.TempDir()
		h.holders = holdertest.New(func(launch *wire.Launch) holder.Program { return programtest.NewEcho(launch.PTY) })
		var err error
		if h.server, err = New(Config{Settings: h.settings, Granted: true, Holders: h.holders}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			h.holders.Kill()
			h.holders.Wait()
			h.server.finish()
			h.server.access.Close()
		})
		f(h)
	})
}

// setHolders replaces the holders. The goroutines that wait for the end of sessions have read them
// before.
func (h *host) setHolders(holders processes.Holders) {
	synctest.Wait()
	h.server.holders = holders
}

// by logs in by a token.
func (h *host) by() *privsep.By {
	h.t.Helper()
	token, err := h.server.IssueToken(uint32(os.Geteuid()))
	if err != nil {
		h.t.Fatal(err)
	}
	login, err := h.server.Redeem(h.t.Context(), &privsep.Token{Token: token})
	if err != nil {
		h.t.Fatal(err)
	}
	return &privsep.By{Login: login.ID}
}

// request returns what the network half asks for a client's Attach.
func (h *host) request(req *wire.Attach) *privsep.Attach {
	h.t.Helper()
	m, err := wire.New(req)
	if err != nil {
		h.t.Fatal(err)
	}
	return &privsep.Attach{
		By: *h.by(), Mode: req.Mode, Session: req.Session, Instance: req.Instance, PTY: req.PTY, Role: req.Role, Payload: m.Payload,
	}
}

// attach starts a session, and leaves it.
func (h *host) attach() (attached wire.Attached) {
	h.t.Helper()
	a, err := h.server.Attach(h.t.Context(), h.request(&wire.Attach{PTY: true}))
	if err != nil {
		h.t.Fatal(err)
	}
	defer a.Carrier.Close()
	if err := wire.Message(a.Answer).Decode(&attached); err != nil {
		h.t.Fatal(err)
	}
	return attached
}

// list returns what a client sees.
func (h *host) list() *wire.Listing {
	h.t.Helper()
	l, err := h.server.List(h.t.Context(), h.by())
	if err != nil {
		h.t.Fatal(err)
	}
	return l
}

// An idle is a network half that serves nobody.
type idle struct{}

var _ privsep.Network = idle{}

func (idle) Run(ctx context.Context) error { <-ctx.Done(); return nil }
func (idle) Update(privsep.State)          {}
func (idle) Serve(ctx context.Context, l privsep.Listener) error {
	defer l.Socket.Close()
	<-ctx.Done()
	return nil
}
func (idle) ServeLocal(_ context.Context, c net.Conn, _ *privsep.Local) { c.Close() }
func (idle) Clients(context.Context) (*privsep.Clients, error)          { return new(privsep.Clients), nil }
func (idle) Metrics(context.Context) ([]byte, error)                    { return nil, nil }
