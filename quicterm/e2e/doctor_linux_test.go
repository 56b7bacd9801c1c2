package e2e

import (
	"net/netip"
	"os/exec"
	"testing"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

// A tunnel on the way that carries no packets of QUIC's size is told from a network that blocks UDP.
func TestDoctorWherePacketsAreTooLarge(t *testing.T) {
	if err := rig.CanNamespace(); err != nil {
		t.Skip(err)
	}
	h := newHost(t)
	n := rig.NewNamespace(t)
	n.IP("link", "set", "lo", "mtu", "1000")
	h.In = n
	h.Start()
	want(t, func() *exec.Cmd { return n.In(h.Via(h.Addr, "doctor", nil)) },
		`mtu warn small UDP packets arrive, those of 1200 bytes do not \(the interface's MTU is 1000\) — .*MTU of 1280`,
		"udp warn no answer", "tcp ok ", "auth ok logged in over TCP")
}

// Of several interfaces, the doctor tells what each can do, and whether a NAT is behind them.
func TestDoctorOfInterfaces(t *testing.T) {
	if err := rig.CanNamespace(); err != nil {
		t.Skip(err)
	}
	h := newHost(t)
	laptop, wifi, _ := roamingWorld(t, h)
	wifi.Translate(netip.MustParseAddr("10.1.0.9"))
	h.Start()
	doctor := func() *exec.Cmd { return laptop.In(h.Via(h.Addr, "doctor", nil)) }
	want(t, doctor, "paths ok wlan0: UDP .* ms, TCP .* ms; wwan0: UDP .* ms, TCP .* ms", "nat ok a NAT shows us as 10.1.0.9:")
	laptop.Batch("link set wlan0 down")
	want(t, doctor, "paths ok wwan0: UDP .* ms, TCP .* ms", "nat ok no NAT")
	laptop.Batch("link set wlan0 up", "route add default dev wlan0 metric 700")
	wifi.Set(netem.Config{Down: true})
	want(t, doctor, "paths warn wlan0: UDP no, TCP no; wwan0: UDP .* ms, TCP .* ms — sessions avoid wlan0")
}
