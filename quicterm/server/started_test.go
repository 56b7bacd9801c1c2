//go:build linux || darwin

package server

import (
	"testing"

	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A request that comes again when its program has ended, as from a connection that was overtaken,
// does not run the program again.
func TestRequestAfterItsSessionEnded(t *testing.T) {
	onHost(t, func(h *host) {
		request := &wire.Attach{PTY: true, Instance: wire.InstanceID{1}}
		for _, want := range []wire.Type{wire.TypeAttached, wire.TypeError} {
			c, _, _ := h.dial(quic.Dial, false)
			h.send(c, h.login(request)...)
			h.want("request", c, want)
			c.Close()
			h.holders.Kill()
			h.holders.Wait()
		}
		c, _, _ := h.dial(quic.Dial, false)
		defer c.Close()
		request.Instance = wire.InstanceID{2}
		h.send(c, h.login(request)...)
		h.want("another client", c, wire.TypeAttached)
	})
}
