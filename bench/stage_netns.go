//go:build linux

package main

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

// A netnsStage has the server and each seat in a network namespace of its own, and a
// router between them that carries all of IPv4's TCP and UDP. Each seat is behind a
// NAT. It needs root.
type netnsStage struct {
	site
	server *rig.Namespace
}

func newNetnsStage(m *measurement, seed uint64) stage {
	if err := rig.CanNamespace(); err != nil {
		m.Fatal(err)
	}
	s := &netnsStage{site: site{router: netem.NewRouter(seed)}}
	m.Cleanup(func() { s.router.Close() })
	s.server = newSandbox(m)
	s.attach(m, s.server, "eth0", netem.Config{}, "10.0.0.0/24")
	s.server.Batch("addr add "+roamServer+"/24 dev eth0", "link set eth0 up", defaultRoute("eth0"))
	s.site.host = rig.NewHost(m, m.bin)
	s.site.host.In = s.server
	s.site.host.Addr = netip.AddrPortFrom(netip.MustParseAddr(roamServer), roamPort)
	return s
}

func (s *netnsStage) host() *rig.Host { return s.site.host }

func (s *netnsStage) seat(m *measurement, n int, cfg netem.Config) *seat {
	ns := newSandbox(m)
	l := &netnsLink{ns: ns, network: fmt.Sprintf("10.%d.0.", n+1)}
	l.Port = s.attach(m, ns, "wlan0", cfg, l.network+"0/24")
	ns.Batch("link set wlan0 up")
	l.Readdress()
	return &seat{link: l, in: ns, addr: s.site.host.Addr}
}

// A netnsLink is a seat's network: the router's port for its interface.
type netnsLink struct {
	*netem.Port
	ns      *rig.Namespace
	network string // the first three bytes of its addresses
	moves   int
}

// Readdress moves the client to another network: its interface loses its address,
// and with it the route, and gains others, and so does the NAT.
func (l *netnsLink) Readdress() {
	const half = 100 // addresses for the interface, and for the NAT
	var commands []string
	if l.moves > 0 {
		commands = append(commands, "addr flush dev wlan0")
	}
	at := l.moves % half
	l.moves++
	l.Translate(netip.MustParseAddr(l.network + strconv.Itoa(254-at)))
	l.ns.Batch(append(commands, fmt.Sprintf("addr add %s%d/32 dev wlan0", l.network, 2+at), defaultRoute("wlan0"))...)
}

// newSandbox makes a namespace. What runs in it ends with it, such as servers that
// a login leaves behind.
func newSandbox(m *measurement) *rig.Namespace {
	ns := rig.NewNamespace(m)
	m.Cleanup(func() {
		for until := time.Now().Add(rig.Patience); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
			pids := inhabitants(ns)
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

// inhabitants returns the processes in a namespace, but for this one, which may visit
// it.
func inhabitants(ns *rig.Namespace) []int {
	out, _ := exec.Command("ip", "netns", "pids", ns.Name).Output()
	var pids []int
	for _, line := range strings.Fields(string(out)) {
		if pid, err := strconv.Atoi(line); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// servers returns the processes in the server's namespace that sessions do not run:
// those without a terminal, or with that of this program.
func (s *netnsStage) servers(m *measurement) []int {
	own := terminal(os.Getpid())
	pids := slices.DeleteFunc(inhabitants(s.server), func(pid int) bool {
		tty := terminal(pid)
		return tty != noTerminal && tty != own
	})
	if len(pids) == 0 {
		m.Fatal("no server runs")
	}
	return pids
}

// noTerminal is what terminal returns where there is none.
const noTerminal = "0"

// terminal returns the number of a process's controlling terminal.
func terminal(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return noTerminal
	}
	const tty = 4 // behind the name, which may contain anything: proc(5)
	return strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))[tty]
}

// tcpControl is the congestion control of most distributions' TCP.
const tcpControl = "cubic"

// tcpSettings are where the kernel tells what it has of it.
const tcpSettings = "/proc/sys/net/ipv4/tcp_"

// defaultRoute returns the command of ip(8) for a route over an interface. Its TCP is
// what distributions have, where the kernel has it, whatever this machine's is. (The
// setting of a namespace may be restricted to what all users of the machine may use.)
func defaultRoute(device string) string {
	route := "route add default dev " + device
	if hasTCPControl() {
		route += " congctl " + tcpControl
	}
	return route
}

// defaultTCPControl returns what the stage's TCP uses.
func defaultTCPControl() string {
	if hasTCPControl() {
		return tcpControl
	}
	b, _ := os.ReadFile(tcpSettings + "congestion_control")
	return strings.TrimSpace(string(b))
}

func hasTCPControl() bool {
	b, _ := os.ReadFile(tcpSettings + "available_congestion_control")
	return slices.Contains(strings.Fields(string(b)), tcpControl)
}
