//go:build linux || darwin

package monitor

import (
	"context"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/monitor/processes"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// The holders that are asked, and those that are started, are so many a second, and the
// requests that are served so many at once. Who asks for more waits; other accounts, and what takes access, do not.
func TestRequestsOfAccount(t *testing.T) {
	onHost(t, func(h *host) {
		first := h.attach()
		use, uid := h.server.accounts, first.UID
		for use.starts.Of(processes.Asker{UID: uid}).Allow() {
		}
		start := time.Now()
		h.attach()
		if d := time.Since(start); d < 100*time.Millisecond || d > time.Second {
			t.Errorf("a session beyond the rate takes %v, want a tenth of a second", d)
		}
		for use.asks.Of(processes.Asker{UID: uid}).Allow() {
		}
		start = time.Now()
		if l := h.list(); len(l.Sessions) != 2 {
			t.Errorf("%d sessions are listed, want 2", len(l.Sessions))
		}
		if d := time.Since(start); d < (leastAsks+2)*time.Millisecond || d > time.Second {
			t.Errorf("a listing beyond the rate takes %v", d)
		}
		var ends []func()
		begin := func() {
			end, err := use.requests.Take(context.Background(), processes.Asker{UID: uid})
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, end)
		}
		for range maxRequests {
			begin()
		}
		time.AfterFunc(time.Minute, ends[0])
		start = time.Now()
		if _, err := h.server.List(h.t.Context(), h.by()); err != nil {
			t.Error(err)
		}
		if d := time.Since(start); d < time.Minute {
			t.Errorf("a request too many was served after %v", d)
		}
		begin()
		for use.asks.Of(processes.Asker{UID: uid}).Allow() {
		}
		start = time.Now()
		for name, revoke := range map[string]func() (*wire.Revoked, error){
			"a client": func() (*wire.Revoked, error) {
				return h.server.Revoke(h.t.Context(), &privsep.Revoke{By: *h.by(), Request: wire.Revoke{All: true}})
			},
			"the operator": func() (*wire.Revoked, error) {
				return h.server.revokeAccess(h.t.Context(), operator{name: "root"}, h.server.self.Name, nil)
			},
		} {
			if revoked, err := revoke(); err != nil || revoked.Silent > 0 {
				t.Errorf("%s: %+v, %v", name, revoked, err)
			}
		}
		if d := time.Since(start); d > 0 {
			t.Errorf("revocations wait for the account's requests: %v", d)
		}
	})
}
