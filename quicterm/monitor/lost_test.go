//go:build linux || darwin

package monitor

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A recorded has holders of an account that has the record of a lost session.
type recorded struct {
	Holders
	started *bool
}

func (r recorded) Records(context.Context, *account.Account, *wire.Launch) (wire.Message, error) {
	info := wire.Info{ID: wire.SessionID{7}, Name: "lost", Phase: wire.PhaseLost, PTY: true}
	b, err := wire.EncodeInfo(info)
	if err != nil {
		return wire.Message{}, err
	}
	m, err := wire.New(&wire.State{Visible: true, Own: true, PTY: true, Phase: info.Phase, Name: info.Name, Info: b})
	if err != nil {
		return wire.Message{}, err
	}
	return wire.New(&wire.Records{States: [][]byte{m.Payload}})
}

func (r recorded) Start(context.Context, *account.Account, netip.Addr, *wire.Launch) (wire.Started, error) {
	*r.started = true
	return wire.Started{}, context.Canceled
}

// A lost session counts as a new one when it is shown: not above max_sessions_per_user, and not while the
// daemon drains.
func TestRestoreIsAdmitted(t *testing.T) {
	onHost(t, func(h *host) {
		adopt := func(settings *configs.Server) {
			if err := h.server.adopt(settings); err != nil {
				t.Fatal(err)
			}
		}
		kept := *h.server.settings()
		kept.Persist = "screen"
		limited := kept
		limited.MaxSessionsPerUser = 1
		adopt(&kept)
		h.attach()
		var started bool
		h.setHolders(recorded{h.holders, &started})
		attach := func(mode wire.Mode) error {
			_, err := h.server.Attach(h.t.Context(), h.request(&wire.Attach{Mode: mode, Session: "lost", PTY: true}))
			return err
		}
		for _, mode := range []wire.Mode{wire.ModeAttach, wire.ModeAttachOrCreate} {
			if started = false; attach(mode) == nil || !started {
				t.Errorf("mode %d: not restored", mode)
			}
			started = false
			adopt(&limited)
			if err := attach(mode); err == nil || !strings.Contains(err.Error(), "max_sessions_per_user is 1") || started {
				t.Errorf("mode %d, above the limit: %v", mode, err)
			}
			adopt(&kept)
			h.server.draining.Store(true)
			if err := attach(mode); !errors.Is(err, privsep.ErrDraining) || started {
				t.Errorf("mode %d, while the daemon drains: %v", mode, err)
			}
			h.server.draining.Store(false)
		}
	})
}
