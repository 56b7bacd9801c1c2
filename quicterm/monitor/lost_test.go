//go:build linux || darwin

package monitor

import (
	"context"
	"errors"
	"testing"

	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/monitor/processes"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A recorded has holders of an account that has the record of a lost session.
type recorded struct{ processes.Holders }

func (r recorded) Records(_ context.Context, _ *account.Account, launch *wire.Launch) (wire.Message, error) {
	info := wire.Info{ID: wire.SessionID{7}, Name: "lost", Phase: wire.PhaseLost, PTY: true}
	if launch.Persist.Task == wire.PersistShow && launch.ID == info.ID {
		return wire.New(wire.LostError(&wire.Lost{Name: info.Name, Screen: []byte("last")}))
	}
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

// An attach to a lost session is told what that has left. A connect by its name starts another session.
func TestLostIsShown(t *testing.T) {
	onHost(t, func(h *host) {
		kept := *h.server.settings()
		kept.Persist = "screen"
		if err := h.server.adopt(&kept); err != nil {
			t.Fatal(err)
		}
		h.setHolders(recorded{h.holders})
		attach := func(mode wire.Mode) error {
			a, err := h.server.Attach(h.t.Context(), h.request(&wire.Attach{Mode: mode, Session: "lost", PTY: true}))
			if err == nil {
				a.Carrier.Close()
			}
			return err
		}
		var refusal *wire.Error
		if err := attach(wire.ModeAttach); !errors.As(err, &refusal) || refusal.Code != wire.CodeLost || string(refusal.Lost.Screen) != "last" {
			t.Errorf("attach: %v", err)
		}
		if err := attach(wire.ModeAttachOrCreate); err != nil {
			t.Errorf("connect: %v", err)
		}
	})
}
