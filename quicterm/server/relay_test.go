//go:build linux || darwin

package server

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/carriertest"
	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A deaf has holders that neither read what a client sends nor close its carrier.
type deaf struct{ Holders }

func (d deaf) Carry(ctx context.Context, uid uint32, id wire.SessionID, open *wire.Open, m wire.Message, datagrams bool) (wire.Message, carrier.Carrier, error) {
	answer, link, err := d.Holders.Carry(ctx, uid, id, open, m, datagrams)
	if err == nil {
		link.Close()
		link, _ = carriertest.Pair()
	}
	return answer, link, err
}

// A relay ends with its client, also while the holder reads nothing.
func TestRelayEndsWithItsClient(t *testing.T) {
	onHost(t, func(h *host) {
		attached := h.attach()
		h.server.holders = deaf{h.holders}
		c, _, _ := h.dial(quic.DialEarly, false)
		h.resume(c, attached, 1, make([]byte, 100))
		h.want("accepted by a deaf holder", c, wire.TypeResumed)
		c.Close()
		time.Sleep(2 * closeTimeout)
		synctest.Wait()
		if n := h.server.connections.Load(); n != 0 {
			t.Errorf("%d connections are left", n)
		}
	})
}
