package e2e

import (
	"net/netip"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

// A transfer of sftp through qt continues over another interface when the one that it uses goes
// down, and over that one when it is back and the other goes down.
func TestSSHConfigMoves(t *testing.T) {
	skipUnderRace(t)
	if err := rig.CanNamespace(); err != nil {
		t.Skip(err)
	}
	router := netem.NewRouter(1)
	t.Cleanup(func() { router.Close() })
	server, client := rig.NewNamespace(t), rig.NewNamespace(t)
	attach := func(ns *rig.Namespace, name, network string) {
		t.Helper()
		outside := ns.Name + name[1:2]
		link := netem.Config{Delay: 5 * time.Millisecond, Rate: 50_000_000}
		if _, err := router.Attach(outside, link, netip.MustParsePrefix(network)); err != nil {
			t.Fatal(err)
		}
		rig.IP(t, "link", "set", outside, "netns", ns.Name, "name", name)
	}
	attach(server, "eth0", "10.0.0.0/24")
	attach(client, "wlan0", "10.0.1.0/24")
	attach(client, "wwan0", "10.0.2.0/24")
	server.Batch("addr add 10.0.0.1/32 dev eth0", "link set eth0 up", "route add default dev eth0")
	const wlanRoute = "route add default dev wlan0 metric 100"
	const wwanRoute = "route add default dev wwan0 metric 600"
	client.Batch("addr add 10.0.1.1/32 dev wlan0", "link set wlan0 up", wlanRoute,
		"addr add 10.0.2.1/32 dev wwan0", "link set wwan0 up", wwanRoute)

	h := newHost(t)
	h.In, h.Addr = server, netip.MustParseAddrPort("10.0.0.1:4433")
	h.Start()
	config := startSSHD(t, h, "")
	h.QT("connect") // writes the client's settings file
	command := func(name string, args ...string) *exec.Cmd {
		cmd := client.In(exec.Command(name, args...))
		cmd.Env, cmd.Dir = h.Env(), h.Dir
		return cmd
	}
	block, err := command(filepath.Join(bin, "qt"), "ssh-config", "-F", config, "-p", "4433", "server").Output()
	if err != nil {
		t.Fatal(err)
	}
	h.Write("ssh_config_qt", string(block))
	sftp := command("sftp", "-F", h.Path("ssh_config_qt"), "-b", h.Path("batch"), "server.qt")
	transfer(t, h, sftp, random(12<<20), func(step int) {
		if step == 1 {
			client.Batch("link set wlan0 down")
		} else {
			client.Batch("link set wlan0 up", wlanRoute, "link set wwan0 down")
		}
	})
}
