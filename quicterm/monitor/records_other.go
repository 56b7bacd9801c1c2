//go:build darwin

package monitor

import (
	"context"

	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// recordLogin does nothing.
func (*Sessions) recordLogin(*account.Account, wire.Started, privsep.Path) {}

// followLogins does nothing until ctx ends.
func (*Sessions) followLogins(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
