package quic

import (
	"net"
	"testing"

	quicgo "github.com/quic-go/quic-go"
)

// A path may change to one that carries only small packets, unless it stays on the machine.
func TestServerSendsWhatEveryPathCarries(t *testing.T) {
	conf := serverConfig(nil)
	for addr, want := range map[string]bool{
		"10.1.0.2": true, "2001:db8::1": true, "::ffff:10.1.0.2": true,
		"127.0.0.1": false, "::1": false, "::ffff:127.0.0.1": false,
	} {
		client := &quicgo.ClientInfo{RemoteAddr: &net.UDPAddr{IP: net.ParseIP(addr), Port: 4433}}
		c, err := conf.GetConfigForClient(client)
		if err != nil {
			t.Fatal(err)
		}
		if c.InitialPacketSize != 1200 || c.DisablePathMTUDiscovery != want {
			t.Errorf("%s: packets of %d bytes, larger ones: %v", addr, c.InitialPacketSize, !c.DisablePathMTUDiscovery)
		}
	}
}
