//go:build linux

package main

import (
	"fmt"
	"net/netip"
	"os/exec"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

var (
	clientNet = netip.MustParsePrefix("10.77.1.0/24")
	serverNet = netip.MustParsePrefix("10.77.2.0/24")
)

const (
	clientIP = "10.77.1.1"
	serverIP = "10.77.2.1"
)

// twoHosts returns two namespaces with a link between them.
func twoHosts(m *measurement, cfg netem.Config) (client, server *rig.Namespace) {
	if err := rig.CanNamespace(); err != nil {
		m.Fatal(err)
	}
	router := netem.NewRouter(1)
	m.Cleanup(func() { router.Close() })
	attach := func(name, ip string, cfg netem.Config, network netip.Prefix) *rig.Namespace {
		ns := rig.NewNamespace(m)
		if _, err := router.Attach(name, cfg, network); err != nil {
			m.Fatal(err)
		}
		ns.Take(name, ip+"/24")
		ns.IP("route", "add", "default", "dev", name)
		return ns
	}
	client = attach("qtc0", clientIP, cfg, clientNet)
	server = attach("qts0", serverIP, netem.Config{}, serverNet)
	return client, server
}

// measureConnect times qt and ssh, in turn, from their start to the first prompt
// of the same shell, over a path of 100 ms.
func measureConnect(m *measurement) (string, bool) {
	const times = 7
	client, server := twoHosts(m, netem.Config{Delay: 50 * time.Millisecond})
	h := rig.NewHost(m, m.bin)
	h.In = server
	h.Addr = netip.MustParseAddrPort(serverIP + ":4433")
	h.Start()

	ssh := startSSH(m, h, netip.MustParseAddrPort(serverIP+":2222"))
	const shell = "exec env PS1='ready> ' HISTFILE= sh"
	toPrompt := func(cmd *exec.Cmd) time.Duration {
		cmd.Env = h.Env()
		start := time.Now()
		x := rig.Open(m, client.In(cmd))
		x.Expect("ready> ")
		took := time.Since(start)
		x.Send("exit\r")
		x.Exit()
		return took
	}
	var qts, sshs []time.Duration
	for range times {
		qts = append(qts, toPrompt(h.Via(h.Addr, "connect", []string{"-t"}, shell)))
		sshs = append(sshs, toPrompt(ssh.client(shell, "-t")))
	}
	qt, other := median(qts), median(sshs)
	return fmt.Sprintf("%v, ssh %v: %.2f", qt.Round(time.Millisecond), other.Round(time.Millisecond), float64(qt)/float64(other)), 2*qt <= other
}
