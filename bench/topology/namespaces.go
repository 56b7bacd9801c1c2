//go:build linux

package topology

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

// What a machine in a namespace sees of the server.
const (
	ServerIP   = "10.0.0.1"
	serverIP6  = "fd00::1"
	serverName = "server" // of a dual-stack server
	daemonPort = 4433
)

// Namespaces has the server and each machine in a network namespace of its own, and a
// router between them that carries UDP and TCP. Each interface of a machine has one link
// and, for IPv4, a NAT. It needs root.
type Namespaces struct {
	Server *rig.Namespace

	options Options
	host    *rig.Host
	router  *netem.Router
}

// CheckNamespaces reports why namespaces cannot be used here.
func CheckNamespaces() error {
	if err := rig.CanNamespace(); err != nil {
		return err
	}
	if _, err := os.Stat("/proc/net/if_inet6"); err != nil {
		return fmt.Errorf("network namespaces need IPv6: %w", err)
	}
	return nil
}

// NewNamespaces makes the server's namespace. Its daemon is not started.
func NewNamespaces(t *measure.T, o Options) *Namespaces {
	if err := CheckNamespaces(); err != nil {
		t.Fatal(err)
	}
	s := &Namespaces{options: o, router: netem.NewRouter(o.Seed)}
	t.Cleanup(func() { s.router.Close() })
	s.Server = newNamespace(t)
	networks := []string{"10.0.0.0/24"}
	commands := []string{"addr add " + ServerIP + "/24 dev eth0", "link set eth0 up", defaultRoute("eth0")}
	s.host = rig.NewHost(t, t.Bin)
	s.host.In = s.Server
	s.host.Addr = netip.AddrPortFrom(netip.MustParseAddr(ServerIP), daemonPort)
	if o.DualStack {
		networks = append(networks, "fd00::/64")
		commands = append(commands, "addr add "+serverIP6+"/64 dev eth0 nodad", "route add ::/0 dev eth0")
		s.host.Settings["listen"] = fmt.Sprintf("[%q, %q]", s.host.Addr, fmt.Sprintf("[%s]:%d", serverIP6, daemonPort))
		s.host.KnowName(serverName, daemonPort, s.host.Path("host_key.pub"))
	}
	s.attach(t, s.Server, "eth0", netem.Config{}, networks...)
	s.Server.Batch(commands...)
	return s
}

func (s *Namespaces) Host() *rig.Host { return s.host }

// attach gives a namespace an interface of the router, without addresses and down.
func (s *Namespaces) attach(t *measure.T, ns *rig.Namespace, name string, cfg netem.Config,
	networks ...string) *netem.Port {
	outside := ns.Name + name[1:2] // of at most 15 bytes
	var prefixes []netip.Prefix
	for _, n := range networks {
		prefixes = append(prefixes, netip.MustParsePrefix(n))
	}
	port, err := s.router.Attach(outside, cfg, prefixes...)
	if err != nil {
		t.Fatal(err)
	}
	rig.IP(t, "link", "set", outside, "netns", ns.Name, "name", name)
	return port
}

func (s *Namespaces) Machine(t *measure.T, n int, cfg netem.Config) *Machine {
	ns := newNamespace(t)
	m := &Machine{Namespace: ns, Server: ServerIP, Port: daemonPort}
	if s.options.DualStack {
		ns.Hosts(ServerIP + " " + serverName + "\n" + serverIP6 + " " + serverName + "\n")
		m.Server = serverName
	}
	for i, name := range []string{"wlan0", "wwan0"}[:max(s.options.Interfaces, 1)] {
		f := &Interface{
			ns: ns, name: name, metric: 100 + 500*i, // as NetworkManager's
			network4: fmt.Sprintf("10.%d.%d.", n+1, i), network6: fmt.Sprintf("fd00:%d:%d::", n+1, i),
		}
		f.Port = s.attach(t, ns, name, cfg, f.network4+"0/24", f.network6+"/64")
		ns.Batch("link set " + name + " up")
		f.Readdress()
		m.Links = append(m.Links, f)
	}
	return m
}

// An Interface is one interface of a machine, the router's port for it, and the NAT
// behind that. All interfaces have a default route; the lowest metric is used.
type Interface struct {
	*netem.Port
	ns       *rig.Namespace
	name     string
	metric   int
	network4 string // the first three bytes of its IPv4 addresses
	network6 string // the prefix of its IPv6 addresses
	moves    int
	address  string // of IPv4
}

// Readdress replaces the addresses of the interface and of its NAT. The kernel removes
// the route with the address.
func (f *Interface) Readdress() {
	const half = 100 // addresses for the interface, and for the NAT
	var commands []string
	if f.address != "" {
		commands = append(commands, "addr del "+f.address+" dev "+f.name)
	}
	at := f.moves % half
	f.moves++
	f.address = fmt.Sprintf("%s%d/32", f.network4, 2+at)
	f.Translate(netip.MustParseAddr(f.network4 + strconv.Itoa(254-at)))
	f.ns.Batch(append(commands, "addr add "+f.address+" dev "+f.name, f.route())...)
}

func (f *Interface) route() string {
	return fmt.Sprintf("%s metric %d", defaultRoute(f.name), f.metric)
}

// Down takes the interface down, and with it its route. Up brings both back.
func (f *Interface) Down() { f.ns.Batch("link set " + f.name + " down") }
func (f *Interface) Up()   { f.ns.Batch("link set "+f.name+" up", f.route()) }

// SwitchToIPv6 removes the IPv4 address and adds an IPv6 one.
func (f *Interface) SwitchToIPv6() {
	f.ns.Batch("addr del "+f.address+" dev "+f.name,
		fmt.Sprintf("addr add %s2/128 dev %s nodad", f.network6, f.name),
		fmt.Sprintf("route add ::/0 dev %s metric %d", f.name, f.metric))
}

// newNamespace makes a namespace. Processes in it end with it, such as servers that a
// login leaves behind.
func newNamespace(t *measure.T) *rig.Namespace {
	ns := rig.NewNamespace(t)
	t.Cleanup(func() {
		for until := time.Now().Add(rig.Patience); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
			pids := Processes(ns)
			if len(pids) == 0 {
				return
			}
			for _, pid := range pids {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	})
	return ns
}

// Processes returns the processes in a namespace, except this one, which may enter it.
func Processes(ns *rig.Namespace) []int {
	out, _ := exec.Command("ip", "netns", "pids", ns.Name).Output()
	var pids []int
	for _, field := range strings.Fields(string(out)) {
		if pid, err := strconv.Atoi(field); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}
