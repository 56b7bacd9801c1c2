//go:build linux || darwin

package server

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A Resume in early data is served, also by a restarted daemon, and only once: replayed
// packets are denied, and input behind a used number does not reach the program.
func TestResumeInEarlyData(t *testing.T) {
	onHost(t, func(h *host) {
		attached := h.attach()
		c, recorded, hear := h.dial(quic.DialEarly, true)
		h.resume(c, attached, 1, typed(1, "one,"))
		h.input.await(t, "one,", 1)
		hear()
		h.want("in early data", c, wire.TypeResumed)
		h.wantEarly(c)

		h.stop()
		h.serve()
		c, _, _ = h.dial(quic.DialEarly, false)
		h.resume(c, attached, 2, typed(2, "two,"))
		h.want("by a restarted daemon", c, wire.TypeResumed)
		h.wantEarly(c)
		h.input.await(t, "two,", 1)

		attacker := h.net.Listen(netip.MustParseAddrPort("10.0.0.3:0"))
		defer attacker.Close()
		for _, packet := range recorded.packets() {
			attacker.WriteTo(packet, net.UDPAddrFromAddrPort(serverAddr))
		}
		h.log.await(t, "does not accept the resume", 1)

		c, _, _ = h.dial(quic.DialEarly, false)
		h.resume(c, attached, 2, typed(3, "three,"))
		h.want("with a used number", c, wire.TypeDenied)
		c.Close()
		h.log.await(t, "does not accept the resume", 2)
		if got := h.input.String(); got != "one,two," {
			t.Errorf("the program read %q", got)
		}
	})
}

// The server does not act on a login in early data before the handshake is complete.
func TestLoginInEarlyData(t *testing.T) {
	onHost(t, func(h *host) {
		attached := h.attach()
		c, _, hear := h.dial(quic.DialEarly, true)
		h.send(c, h.login(&wire.Kill{Session: attached.ID.String()})...)
		time.Sleep(10 * roundTrip)
		synctest.Wait()
		if n := strings.Count(h.log.String(), "client logged in"); n != 1 { // that of attach
			t.Errorf("%d clients authenticated before the handshake is complete:\n%s", n-1, &h.log)
		}
		hear()
		h.want("after the handshake", c, wire.TypeDone)
		h.wantEarly(c)
	})
}
