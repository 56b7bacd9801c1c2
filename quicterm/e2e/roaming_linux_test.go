package e2e

import (
	"net/netip"
	"testing"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

// roamingWorld puts the daemon of a host into a namespace, and a laptop with two interfaces into
// another one. A router is between them: the ports are those of wlan0, which is preferred, and wwan0.
func roamingWorld(t *testing.T, h *rig.Host) (laptop *rig.Namespace, wifi, mobile *netem.Port) {
	t.Helper()
	router := netem.NewRouter(1)
	t.Cleanup(func() { router.Close() })
	attach := func(n *rig.Namespace, name, network, address string) *netem.Port {
		t.Helper()
		outside := n.Name + name[1:2] // of at most 15 bytes
		port, err := router.Attach(outside, netem.Config{}, netip.MustParsePrefix(network))
		if err != nil {
			t.Fatal(err)
		}
		rig.IP(t, "link", "set", outside, "netns", n.Name, "name", name)
		n.Batch("addr add "+address+"/24 dev "+name, "link set "+name+" up")
		return port
	}
	server, laptop := rig.NewNamespace(t), rig.NewNamespace(t)
	attach(server, "eth0", "10.0.0.0/24", "10.0.0.1")
	server.Batch("route add default dev eth0")
	wifi = attach(laptop, "wlan0", "10.1.0.0/24", "10.1.0.1")
	mobile = attach(laptop, "wwan0", "10.2.0.0/24", "10.2.0.1")
	laptop.Batch("route add default dev wlan0 metric 100", "route add default dev wwan0 metric 600")
	h.In, h.Addr = server, netip.MustParseAddrPort("10.0.0.1:4433")
	return laptop, wifi, mobile
}
