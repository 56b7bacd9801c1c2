//go:build linux

package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

// A feelNet is a server in a namespace, and a router between it and clients.
type feelNet struct {
	site
	server *rig.Namespace
}

// newFeelNet prepares a server. Its daemon is not started.
func newFeelNet(m *measurement) *feelNet {
	n := &feelNet{site: site{router: netem.NewRouter(1)}}
	m.Cleanup(func() { n.router.Close() })
	n.server = rig.NewNamespace(m)
	n.attach(m, n.server, "eth0", netem.Config{}, serverNet.String())
	n.server.Batch("addr add "+serverIP+"/24 dev eth0", "link set eth0 up", defaultRoute("eth0"))
	n.host = rig.NewHost(m, m.bin)
	n.host.In = n.server
	n.host.Addr = netip.MustParseAddrPort(serverIP + ":4433")
	return n
}

// client returns a machine with an interface, or two, whose links are each like
// this.
func (n *feelNet) client(m *measurement, number, interfaces int, cfg netem.Config) (*rig.Namespace, []*netem.Port) {
	ns := rig.NewNamespace(m)
	var ports []*netem.Port
	for i, name := range []string{"wlan0", "wwan0"}[:interfaces] {
		network := fmt.Sprintf("10.%d.%d.", 100+number, i)
		ports = append(ports, n.attach(m, ns, name, cfg, network+"0/24"))
		ns.Batch("addr add "+network+"2/32 dev "+name, "link set "+name+" up", fmt.Sprintf("route add default dev %s metric %d", name, 100+i))
	}
	return ns, ports
}

// proxyLink measures the link that a proxy makes.
func proxyLink(m *measurement) (string, bool) {
	server, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() { server.Close() })
	p, err := netem.NewProxy(server.LocalAddr().(*net.UDPAddr).AddrPort(), netem.Config{}, 1)
	if err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() { p.Close() })
	client, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(p.Addr()))
	if err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() { client.Close() })
	return measureLink(m, client, server, p.Set)
}

// routerLink measures the link that a router between namespaces makes.
func routerLink(m *measurement) (string, bool) {
	n := newFeelNet(m)
	here, ports := n.client(m, 1, 1, netem.Config{})
	var client, server *net.UDPConn
	n.server.Do(func() (err error) {
		server, err = net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(serverIP)})
		return err
	})
	m.Cleanup(func() { server.Close() })
	here.Do(func() (err error) {
		client, err = net.DialUDP("udp", nil, server.LocalAddr().(*net.UDPAddr))
		return err
	})
	m.Cleanup(func() { client.Close() })
	return measureLink(m, client, server, ports[0].Set)
}

// measureLink sends packets over a link, which the server sends back, and compares
// how it treats them with what it is asked to do.
func measureLink(m *measurement, client, server *net.UDPConn, set func(netem.Config)) (string, bool) {
	const (
		packets = 1000
		gap     = 2 * time.Millisecond
		asked   = 0.29
		size    = 1200
		filling = 2 * time.Second
	)
	echo := make(chan struct{})
	defer func() { <-echo }()
	defer server.Close()
	var there atomic.Int64
	go func() {
		defer close(echo)
		buf := make([]byte, size)
		for {
			n, from, err := server.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			there.Add(1)
			server.WriteToUDPAddrPort(buf[:n], from)
		}
	}()
	set(netem.Config{Delay: feelRTT / 2, Loss: asked})
	start := time.Now()
	go func() {
		for range packets {
			client.Write(binary.BigEndian.AppendUint64(nil, uint64(time.Since(start))))
			time.Sleep(gap)
		}
	}()
	var times []time.Duration
	buf := make([]byte, size)
	for client.SetReadDeadline(time.Now().Add(packets * 2 * gap)); ; {
		if _, err := client.Read(buf); err != nil {
			break // the time is up
		}
		times = append(times, time.Since(start)-time.Duration(binary.BigEndian.Uint64(buf)))
	}
	if len(times) == 0 {
		m.Fatal("nothing comes back")
	}
	slices.Sort(times)
	rtt := percentile(times, 0.5)
	up, down := 1-float64(there.Load())/packets, 1-float64(len(times))/float64(there.Load())

	set(netem.Config{Delay: feelRTT / 2, Rate: slowRate, Queue: bloated})
	go func() {
		for until := time.Now().Add(filling); time.Now().Before(until); time.Sleep(gap) {
			client.Write(make([]byte, size))
		}
	}()
	var first, last time.Time
	bytes := 0
	for client.SetReadDeadline(time.Now().Add(filling)); ; {
		n, err := client.Read(buf)
		if err != nil {
			break
		}
		if last = time.Now(); first.IsZero() {
			first = last
			continue
		}
		bytes += n
	}
	rate := 8 * float64(bytes) / last.Sub(first).Seconds()
	near := func(a, b, d float64) bool { return a-b <= d && b-a <= d }
	return fmt.Sprintf("%v, %.0f %% and %.0f %%, %.2f Mbit/s", ms(rtt), 100*up, 100*down, rate/1e6),
		rtt >= feelRTT && rtt < feelRTT+3*time.Millisecond && near(up, asked, 0.05) && near(down, asked, 0.05) && near(rate/slowRate, 1, 0.03)
}
