package main

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/quicterm/quicterm/migrate/netmon"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/doctor"
)

// machine looks at this machine alone.
func machine() (r doctor.Report) {
	r.Add("version", doctor.OK, "", "%s", reach.Software())
	if file, err := exec.LookPath("ssh"); err == nil {
		r.Add("ssh", doctor.OK, "", "%s", file)
	} else {
		r.Add("ssh", doctor.Warn, "install OpenSSH's client",
			"there is no ssh program: qt reaches only daemons that run already")
	}
	addKeys(&r)
	addLocalPaths(&r)
	addState(&r)
	return r
}

// addKeys tells which keys there are to log in with, whatever ssh's configuration says of a host.
func addKeys(r *doctor.Report) {
	agent := "no agent"
	count := 0
	if socket := os.Getenv("SSH_AUTH_SOCK"); socket != "" {
		keys, closeAgent, err := auth.AgentKeys(socket)
		if err != nil {
			agent = fmt.Sprintf("the agent at %s does not answer", socket)
		} else {
			closeAgent()
			count = len(keys)
			agent = fmt.Sprintf("an agent with %d keys", count)
		}
	}
	var files []string
	if home, err := os.UserHomeDir(); err == nil {
		for _, name := range []string{"id_ed25519", "id_ed25519_sk", "id_ecdsa", "id_ecdsa_sk", "id_rsa"} {
			if file := filepath.Join(home, ".ssh", name); isFile(file) {
				files = append(files, file)
			}
		}
	}
	found := agent + "; no key files where ssh looks for every host"
	if len(files) > 0 {
		found = agent + "; " + strings.Join(files, ", ")
	}
	if count == 0 && len(files) == 0 {
		r.Add("keys", doctor.Warn, "make a key with ssh-keygen, and put it on servers with ssh-copy-id; "+
			"qt doctor HOST looks at the keys that ssh's configuration names for HOST", "%s", found)
		return
	}
	r.Add("keys", doctor.OK, "", "%s", found)
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// addLocalPaths tells what each interface can do, as far as the system knows.
func addLocalPaths(r *doctor.Report) {
	names, err := netmon.Interfaces()
	if err != nil {
		r.Add("paths", doctor.Warn, "the system chooses the interface: a network that leads nowhere is left later", "%v", err)
		return
	}
	if len(names) == 0 {
		r.Add("paths", doctor.Warn, "connect to a network",
			"no interface has an address for other networks: only this machine is reached")
		return
	}
	var lines []string
	routes := 0
	for _, name := range names {
		var families []string
		for _, to := range []string{"192.0.2.1", "2001:db8::1"} { // nothing is sent there
			if route, err := netmon.Lookup(netip.AddrPortFrom(netip.MustParseAddr(to), 443), name); err == nil {
				families = append(families, "from "+route.Source.String())
			}
		}
		if len(families) == 0 {
			families = []string{"no route to the internet"}
		} else {
			routes++
		}
		lines = append(lines, name+": "+strings.Join(families, ", "))
	}
	found := strings.Join(lines, "; ")
	if routes == 0 {
		r.Add("paths", doctor.Warn, "check your network: only hosts of these networks are reached", "%s", found)
		return
	}
	r.Add("paths", doctor.OK, "", "%s", found)
}

// addState tells whether qt can keep what it learns of servers.
func addState(r *doctor.Report) {
	dir, err := reach.StateDir()
	if err == nil {
		err = doctor.TryWrite(dir)
	}
	if err != nil {
		r.Add("state", doctor.Warn,
			"make it writable, make room, or set XDG_STATE_HOME: without it, each connection begins by ssh", "%v", err)
		return
	}
	r.Add("state", doctor.OK, "", "%s can be written", dir)
}
