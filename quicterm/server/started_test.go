//go:build linux || darwin

package server

import (
	"testing"
	"time"

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

func TestStartedForgets(t *testing.T) {
	var s started
	now := time.Unix(0, 0)
	for i := range 100_000 {
		s.add(now, starter{uint32(i), wire.InstanceID{1}})
		s.add(now, starter{uint32(i), wire.InstanceID{}})
		now = now.Add(time.Second)
	}
	if n := len(s.at); n > 121 {
		t.Errorf("%d clients are remembered, want those of two minutes", n)
	}
	if s.has(starter{99_999, wire.InstanceID{}}) || !s.has(starter{99_999, wire.InstanceID{1}}) {
		t.Error("want clients with an instance to be remembered, and no others")
	}
}
