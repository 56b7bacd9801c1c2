//go:build linux || darwin

package monitor

import (
	"context"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
)

// The holders that are asked, and those that are started, are so many a second, and the
// requests that are served so many at once. Who asks for more waits; other accounts do not.
func TestRequestsOfAccount(t *testing.T) {
	onHost(t, func(h *host) {
		first := h.attach()
		use := h.server.accounts.of(first.UID)
		for use.starts.Allow() {
		}
		start := time.Now()
		h.attach()
		if d := time.Since(start); d < 100*time.Millisecond || d > time.Second {
			t.Errorf("a session beyond the rate takes %v, want a tenth of a second", d)
		}
		for use.asks.Allow() {
		}
		start = time.Now()
		if l := h.list(); len(l.Sessions) != 2 {
			t.Errorf("%d sessions are listed, want 2", len(l.Sessions))
		}
		if d := time.Since(start); d < (leastAsks+2)*time.Millisecond || d > time.Second {
			t.Errorf("a listing beyond the rate takes %v", d)
		}
		for range maxRequests {
			if _, err := use.begin(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		for _, request := range []func() error{
			func() error { _, err := h.server.List(h.t.Context(), h.by()); return err },
			func() error {
				_, err := h.server.Revoke(h.t.Context(), &privsep.Revoke{By: *h.by(), All: true})
				return err
			},
		} {
			time.AfterFunc(time.Minute, func() { <-use.requests })
			start = time.Now()
			if err := request(); err != nil {
				t.Error(err)
			}
			if d := time.Since(start); d < time.Minute {
				t.Errorf("a request too many was served after %v", d)
			}
			if _, err := use.begin(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	})
}
