//go:build linux

package main

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

const (
	rtt      = 60 * time.Millisecond // on each interface of a client
	hopDelay = rtt / 4               // on a port, each way

	roamServer = "10.0.0.1"
	roamPort   = 4433
	roamHosts  = roamServer + " server\nfd00::1 server\n"
)

// A site is a server in a namespace, and the router between it and its clients.
type site struct {
	host    *rig.Host
	router  *netem.Router
	command *exec.Cmd // of a client
}

// newSite starts a daemon. Clients run a command on it, which is to say "ready".
func newSite(m *measurement, byName bool, flags []string, command string) *site {
	s := &site{router: netem.NewRouter(1)}
	m.Cleanup(func() { s.router.Close() })
	ns := rig.NewNamespace(m)
	s.attach(m, ns, "eth0", netem.Config{Delay: hopDelay}, "10.0.0.0/24", "fd00::/64")
	ns.Batch("addr add "+roamServer+"/24 dev eth0", "addr add fd00::1/64 dev eth0 nodad",
		"link set eth0 up", "route add default dev eth0", "route add ::/0 dev eth0")

	h := rig.NewHost(m, m.bin)
	h.In = ns
	h.Addr = netip.AddrPortFrom(netip.MustParseAddr(roamServer), roamPort)
	h.Settings["listen"] = fmt.Sprintf("[%q, %q]", h.Addr, fmt.Sprintf("[fd00::1]:%d", roamPort))
	h.Settings["detached_ttl"] = `"1h"`
	h.Start()
	h.KnowName("server", roamPort, h.Path("host_key.pub"))
	name := roamServer
	if byName {
		name = "server"
	}
	s.host = h
	s.command = h.To(name, roamPort, "connect", append([]string{"-t"}, flags...), "stty raw -echo; echo ready; "+command)
	return s
}

// attach gives a namespace an interface of the router, without addresses and down.
func (s *site) attach(m *measurement, ns *rig.Namespace, name string, cfg netem.Config, networks ...string) *netem.Port {
	outside := ns.Name + name[1:2]
	var prefixes []netip.Prefix
	for _, n := range networks {
		prefixes = append(prefixes, netip.MustParsePrefix(n))
	}
	port, err := s.router.Attach(outside, cfg, prefixes...)
	if err != nil {
		m.Fatal(err)
	}
	rig.IP(m, "link", "set", outside, "netns", ns.Name, "name", name)
	return port
}

// A roamer is a client in a namespace with two interfaces, and somebody who types
// to it.
type roamer struct {
	*typist
	ns         *rig.Namespace
	wlan, wwan *iface
}

// An iface is an interface of a client. Both have a default route, as
// NetworkManager makes them: the one with the lower metric is used.
type iface struct {
	ns      *rig.Namespace
	port    *netem.Port
	cfg     netem.Config
	name    string
	prefix  string // of its networks: 10.prefix.0/24, fd00:prefix::/64
	host    int    // its address in them
	metric  int
	address string // of IPv4

	off, hole bool // what chaos has made of it
}

// client starts client number n, from 1, of a site.
func (s *site) client(m *measurement, n int, loss float64, nat bool) *roamer {
	ns := rig.NewNamespace(m)
	ns.Hosts(roamHosts)
	r := &roamer{ns: ns, typist: newTypist(m)}
	cfg := netem.Config{Delay: hopDelay, Loss: loss}
	for i, name := range []string{"wlan0", "wwan0"} {
		f := &iface{ns: ns, cfg: cfg, name: name, prefix: fmt.Sprintf("%d.%d", n, i), host: 2, metric: 100 + 500*i}
		f.port = s.attach(m, ns, name, cfg, "10."+f.prefix+".0/24", f.network6()+"/64")
		if nat {
			f.port.Translate(netip.MustParseAddr("10." + f.prefix + ".254"))
		}
		ns.Batch(append([]string{"link set " + name + " up"}, f.adding()...)...)
		if i == 0 {
			r.wlan = f
		} else {
			r.wwan = f
		}
	}
	cmd := exec.Command(s.command.Path, s.command.Args[1:]...)
	cmd.Env = s.command.Env
	r.x = rig.OpenTo(m, ns.In(cmd), r.typist)
	select {
	case <-r.ready:
	case <-r.x.Closed():
		m.Fatalf("the client ended: %q", r.x.Out.String())
	case <-time.After(rig.Patience):
		m.Fatalf("the session does not begin: %q", r.x.Out.String())
	}
	return r
}

func (f *iface) network6() string {
	return "fd00:" + strings.ReplaceAll(f.prefix, ".", ":") + "::"
}

// adding returns the commands that give the interface its address and route.
func (f *iface) adding() []string {
	f.address = fmt.Sprintf("10.%s.%d/32", f.prefix, f.host)
	return []string{"addr add " + f.address + " dev " + f.name, f.route()}
}

func (f *iface) route() string {
	return fmt.Sprintf("route add default dev %s metric %d", f.name, f.metric)
}

// down takes the interface down, up sets it up again, and its route.
func (f *iface) down() { f.ns.Batch("link set " + f.name + " down") }
func (f *iface) up()   { f.ns.Batch("link set "+f.name+" up", f.route()) }

// readdress replaces the address, and with it the route, which the kernel removes.
func (f *iface) readdress() {
	was := f.address
	f.host = f.host%200 + 1
	f.ns.Batch(append([]string{"addr del " + was + " dev " + f.name}, f.adding()...)...)
}

// to6 has the client lose IPv4 and gain IPv6 on both interfaces.
func (r *roamer) to6() {
	var commands []string
	for _, f := range []*iface{r.wlan, r.wwan} {
		commands = append(commands, "addr del "+f.address+" dev "+f.name,
			fmt.Sprintf("addr add %s2/128 dev %s nodad", f.network6(), f.name),
			fmt.Sprintf("route add ::/0 dev %s metric %d", f.name, f.metric))
	}
	r.ns.Batch(commands...)
}

// lose has the network of the interface lose packets, without an event: all of
// them, or as many as it always does.
func (f *iface) lose(all bool) {
	cfg := f.cfg
	cfg.Down = all
	f.port.Set(cfg)
}

// canRoam reports why roaming cannot be measured here.
func canRoam() error {
	if err := rig.CanNamespace(); err != nil {
		return err
	}
	if _, err := os.Stat("/proc/net/if_inet6"); err != nil {
		return fmt.Errorf("roaming needs IPv6: %w", err)
	}
	return nil
}
