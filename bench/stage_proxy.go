//go:build linux

package main

import (
	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

// udpHeaders are in front of what a UDP packet carries: of IPv4 and UDP.
const udpHeaders = 20 + 8

// A proxyStage has the server and all clients on the loopback interface, and between
// them a proxy for each client. It needs no root, and carries UDP only.
type proxyStage struct {
	server *rig.Host
	seed   uint64
}

func newProxyStage(m *measurement, seed uint64) stage {
	return &proxyStage{server: rig.NewHost(m, m.bin), seed: seed}
}

func (s *proxyStage) host() *rig.Host { return s.server }

// seat is called once the daemon listens.
func (s *proxyStage) seat(m *measurement, n int, cfg netem.Config) *seat {
	// A proxy takes a seed for each way.
	p, err := netem.NewProxy(s.server.Addr, cfg, s.seed+2*uint64(n))
	if err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() { p.Close() })
	s.server.Know(p.Addr(), s.server.Path("host_key.pub"))
	return &seat{link: proxyLinks{p}, addr: p.Addr()}
}

// proxyLinks are the links of a proxy.
type proxyLinks struct{ *netem.Proxy }

func (p proxyLinks) Readdress() { p.Rebind() }
func (p proxyLinks) Forget()    { p.Rebind() }

func (p proxyLinks) Counters() (up, down netem.Counters) {
	up, down = p.Proxy.Counters()
	up.Bytes += udpHeaders * up.Packets
	down.Bytes += udpHeaders * down.Packets
	return up, down
}
