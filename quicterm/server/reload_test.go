//go:build linux || darwin

package server

import (
	"slices"
	"testing"
	"time"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A reload changes what new sessions get, and says what has to wait for a restart.
func TestReload(t *testing.T) {
	onHost(t, func(h *host) {
		old := h.attach()
		next := *h.settings
		next.DetachedTTL, next.AcceptEnv = configs.Duration{Duration: 2 * time.Hour}, nil
		next.Metrics, next.MaxUnauthenticated = "unix:/none", 7
		h.server.Reload(&next)
		h.log.await(t, `event=reload settings=detached_ttl`, 1)
		h.log.await(t, `after a restart of the daemon" settings="max_unauthenticated metrics"`, 1)
		h.server.Reload(&next)
		h.log.await(t, `event=reload settings=""`, 1)
		fresh := h.attach()
		time.Sleep(27 * time.Hour) // detached_ttl, and a day for which the exit status is kept
		if ids := h.holders.Sessions(0); !slices.Equal(ids, []wire.SessionID{old.ID}) {
			t.Errorf("the sessions %v are left, want %v: %v is newer than the reload", ids, old.ID, fresh.ID)
		}
	})
}
