//go:build linux

package main

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"os/user"
	"regexp"

	"github.com/quicterm/quicterm/bench/rig"
)

// sshdPath is where sshd is: ordinary users do not have it in their PATH.
const sshdPath = "/usr/sbin/sshd"

// An sshServer is OpenSSH's, with the keys of a host, to compare with.
type sshServer struct {
	host *rig.Host
	addr netip.AddrPort
	user string
	cmd  *exec.Cmd
}

// startSSH starts a server at an address, where the host's daemon runs.
func startSSH(m *measurement, h *rig.Host, addr netip.AddrPort) *sshServer {
	sshd, err := exec.LookPath(sshdPath)
	if err != nil {
		m.Fatalf("needs sshd to compare with: %v", err)
	}
	// sshd wants this place, which its package makes at boot.
	const empty = "/run/sshd"
	if os.Mkdir(empty, 0o755) == nil {
		m.Cleanup(func() { os.Remove(empty) })
	}
	me, err := user.Current()
	if err != nil {
		m.Fatal(err)
	}
	h.Write("known_hosts_ssh", fmt.Sprintf("[%s]:%d %s", addr.Addr(), addr.Port(), h.Read("host_key.pub")))
	cmd := exec.Command(sshd, "-D", "-e", "-f", "/dev/null", "-h", h.Path("host_key"),
		"-o", "ListenAddress="+addr.String(), "-o", "AuthorizedKeysFile="+h.Path("authorized_keys"),
		"-o", "PidFile=none", "-o", "StrictModes=no", "-o", "PermitRootLogin=yes", "-o", "UseDNS=no",
		"-o", "MaxStartups=1000") // many clients come at once
	if h.In != nil {
		cmd = h.In.In(cmd)
	}
	log := rig.NewOutput()
	cmd.Stderr = log
	cmd.WaitDelay = settle // sessions whose client has vanished keep it open
	if err := cmd.Start(); err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	log.Await(m, 0, regexp.MustCompile("Server listening on "+regexp.QuoteMeta(addr.Addr().String())))
	return &sshServer{host: h, addr: addr, user: me.Username, cmd: cmd}
}

// client returns a command that runs another on the server, with flags of ssh.
func (s *sshServer) client(command string, flags ...string) *exec.Cmd {
	args := append(s.flags(), flags...)
	cmd := exec.Command("ssh", append(args, s.destination(), command)...)
	cmd.Env = s.host.Env()
	return cmd
}

// flags are those of a client, and options what there is in them for other programs
// that start ssh.
func (s *sshServer) flags() []string {
	flags := []string{"-F", "/dev/null"}
	for _, option := range s.options() {
		flags = append(flags, "-o", option)
	}
	return flags
}

func (s *sshServer) options() []string {
	return []string{"IdentityFile=" + s.host.Path("id"), fmt.Sprintf("Port=%d", s.addr.Port()),
		"UserKnownHostsFile=" + s.host.Path("known_hosts_ssh"), "IdentitiesOnly=yes"}
}

// destination is the server as clients name it.
func (s *sshServer) destination() string { return s.user + "@" + s.addr.Addr().String() }
