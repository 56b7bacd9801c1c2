//go:build linux

package main

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
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
	sshd, err := exec.LookPath("/usr/sbin/sshd")
	if err != nil {
		m.Fatalf("needs sshd to compare with: %v", err)
	}
	client, server := twoHosts(m, netem.Config{Delay: 50 * time.Millisecond})
	h := rig.NewHost(m, m.bin)
	h.In = server
	h.Addr = netip.MustParseAddrPort(serverIP + ":4433")
	h.Start()

	// sshd wants this place, which its package makes at boot.
	const empty = "/run/sshd"
	if os.Mkdir(empty, 0o755) == nil {
		m.Cleanup(func() { os.Remove(empty) })
	}
	me, err := user.Current()
	if err != nil {
		m.Fatal(err)
	}
	h.Write("known_hosts_ssh", "["+serverIP+"]:2222 "+h.Read("host_key.pub"))
	ssh := server.In(exec.Command(sshd, "-D", "-e", "-f", "/dev/null", "-p", "2222", "-h", h.Path("host_key"),
		"-o", "AuthorizedKeysFile="+h.Path("authorized_keys"), "-o", "PidFile=none", "-o", "StrictModes=no",
		"-o", "PermitRootLogin=yes", "-o", "UseDNS=no"))
	log := rig.NewOutput()
	ssh.Stderr = log
	if err := ssh.Start(); err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() {
		ssh.Process.Kill()
		ssh.Wait()
	})
	log.Await(m, 0, regexp.MustCompile("Server listening on 0.0.0.0"))

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
		sshs = append(sshs, toPrompt(exec.Command("ssh", "-t", "-F", "/dev/null", "-i", h.Path("id"), "-p", "2222",
			"-o", "UserKnownHostsFile="+filepath.Join(h.Dir, "known_hosts_ssh"), "-o", "IdentitiesOnly=yes",
			me.Username+"@"+serverIP, shell)))
	}
	qt, other := median(qts), median(sshs)
	return fmt.Sprintf("%v, ssh %v: %.2f", qt.Round(time.Millisecond), other.Round(time.Millisecond), float64(qt)/float64(other)), 2*qt <= other
}
