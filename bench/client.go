//go:build linux

package main

import (
	"context"
	"log/slog"
	"net/netip"
	"os/user"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm"
	"github.com/quicterm/quicterm/quicterm/auth"
)

// newClient returns a client of a host's daemon that is in this process.
func newClient(m *measurement, h *rig.Host, settings *configs.Client) *quicterm.Client {
	key, err := auth.IdentityFile(h.Path("id"), nil)
	if err != nil {
		m.Fatal(err)
	}
	known, err := auth.LoadKnownHosts("127.0.0.1", h.Addr.Port(), []string{h.Path("known_hosts")})
	if err != nil {
		m.Fatal(err)
	}
	me, err := user.Current()
	if err != nil {
		m.Fatal(err)
	}
	return quicterm.NewClient(quicterm.ClientConfig{
		Settings:  settings,
		Log:       slog.New(slog.DiscardHandler),
		Resolve:   func(context.Context) ([]netip.AddrPort, error) { return []netip.AddrPort{h.Addr}, nil },
		CheckHost: known.Check,
		KeyTypes:  known.KeyTypes(),
		User:      me.Username,
		Keys:      []*auth.UserKey{key},
	})
}
