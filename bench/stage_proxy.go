//go:build linux

package main

import (
	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

// udpHeaders are in front of what a UDP packet carries: of IPv4 and UDP.
const udpHeaders = 20 + 8

// A proxyStage has the server and all clients on the loopback interface, and between
// them a proxy for each client, unless its link is to do nothing at all: that the proxy
// copies packets would be the limit then. It needs no root, and carries UDP only.
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
	if cfg == (netem.Config{}) {
		return &seat{link: noLink{}, addr: s.server.Addr}
	}
	// A proxy takes a seed for each way.
	p, err := netem.NewProxy(s.server.Addr, cfg, s.seed+2*uint64(n))
	if err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() { p.Close() })
	s.server.Know(p.Addr(), s.server.Path("host_key.pub"))
	return &seat{link: proxyLinks{p}, addr: p.Addr()}
}

// noLink is between a client and the server on the same interface. It does nothing, and
// counts nothing.
type noLink struct{}

func (noLink) Set(netem.Config)                    {}
func (noLink) Readdress()                          {}
func (noLink) Forget()                             {}
func (noLink) Counters() (up, down netem.Counters) { return up, down }
func (noLink) Arrived() (up, down uint64)          { return 0, 0 }

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
