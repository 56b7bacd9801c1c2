//go:build linux

package topology

import (
	"os"
	"slices"
	"strings"
)

const (
	// usualControl is the congestion control of most distributions' TCP.
	usualControl = "cubic"

	// tcpSettings is where the kernel says which it has and uses.
	tcpSettings = "/proc/sys/net/ipv4/tcp_"
)

// defaultRoute returns the command of ip(8) for a route over an interface. If the kernel
// has it, TCP uses the usual congestion control there, whatever this machine's is. (The
// setting of a namespace may be restricted to what all users of the machine may use.)
func defaultRoute(device string) string {
	route := "route add default dev " + device
	if HasControl(usualControl) {
		route += " congctl " + usualControl
	}
	return route
}

// CongestionControl returns what TCP uses between namespaces.
func CongestionControl() string {
	if HasControl(usualControl) {
		return usualControl
	}
	b, _ := os.ReadFile(tcpSettings + "congestion_control")
	return strings.TrimSpace(string(b))
}

// HasControl reports whether the kernel has a congestion control.
func HasControl(name string) bool {
	b, _ := os.ReadFile(tcpSettings + "available_congestion_control")
	return slices.Contains(strings.Fields(string(b)), name)
}
