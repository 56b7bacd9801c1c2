//go:build linux

package topology

import (
	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

// udpHeaderBytes are in front of what a UDP packet carries: IPv4's and UDP's.
const udpHeaderBytes = 20 + 8

// A Loopback has the server and all clients on the loopback interface. A UDP proxy for
// each client emulates its link. A link that is to do nothing has no proxy, which would be
// the bottleneck: only there TCP can be used. It needs no root.
type Loopback struct {
	host *rig.Host
	seed uint64
}

// NewLoopback returns a topology with one link for each machine.
func NewLoopback(t *measure.T, o Options) *Loopback {
	return &Loopback{host: rig.NewHost(t, t.Bin), seed: o.Seed}
}

func (l *Loopback) Host() *rig.Host { return l.host }

func (l *Loopback) Machine(t *measure.T, n int, cfg netem.Config) *Machine {
	m := &Machine{Server: l.host.Addr.Addr().String(), Port: l.host.Addr.Port()}
	if cfg != (netem.Config{}) {
		const seeds = 2 // of a proxy: one each way
		p, err := netem.NewProxy(l.host.Addr, cfg, l.seed+seeds*uint64(n))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		l.host.Know(p.Addr(), l.host.Path("host_key.pub"))
		m.Links, m.Port = []Link{proxyLink{p}}, p.Addr().Port()
	}
	return m
}

// A proxyLink is a link through a proxy, which is the NAT as well.
type proxyLink struct{ *netem.Proxy }

func (p proxyLink) Readdress() { p.Rebind() }
func (p proxyLink) Forget()    { p.Rebind() }

func (p proxyLink) Counters() (up, down netem.Counters) {
	up, down = p.Proxy.Counters()
	up.Bytes += udpHeaderBytes * up.Packets
	down.Bytes += udpHeaderBytes * down.Packets
	return up, down
}
