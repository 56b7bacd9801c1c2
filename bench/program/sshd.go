//go:build linux

package program

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"os/user"
	"regexp"
	"strconv"
	"time"

	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/rig"
)

// sshdPath is where sshd is: ordinary users do not have it in their PATH.
const sshdPath = "/usr/sbin/sshd"

// An sshd is OpenSSH's server with the keys of a host.
type sshd struct {
	host *rig.Host
	addr netip.AddrPort
	user string
	cmd  *exec.Cmd

	cipher string // of clients, or "" for the usual one
}

// startSSHD starts a server at an address, in the namespace of the host's daemon, with more options.
func startSSHD(t *measure.T, h *rig.Host, addr netip.AddrPort, options ...string) *sshd {
	path, err := exec.LookPath(sshdPath)
	if err != nil {
		t.Fatalf("no sshd: %v", err)
	}
	os.Mkdir("/run/sshd", 0o755) // as rig.Host.SSHD does: it stays, for another sshd beside this one
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	h.Write("known_hosts_ssh", fmt.Sprintf("[%s]:%d %s", addr.Addr(), addr.Port(), h.Read("host_key.pub")))
	options = append(options, "-D", "-e", "-f", "/dev/null", "-h", h.Path("host_key"),
		"-o", "ListenAddress="+addr.String(), "-o", "AuthorizedKeysFile="+h.Path("authorized_keys"),
		"-o", "PidFile=none", "-o", "StrictModes=no", "-o", "PermitRootLogin=yes", "-o", "UseDNS=no",
		"-o", "MaxStartups=1000", // many clients come at once
		"-o", "Subsystem=sftp internal-sftp")
	cmd := exec.Command(path, options...)
	switch {
	case h.In != nil && h.Daemon != nil: // which grants nothing to another mount namespace
		enter := []string{"nsenter", "--net", "--mount", "--target", strconv.Itoa(h.Daemon.Process.Pid)}
		cmd = exec.Command(enter[0], append(enter[1:], cmd.Args...)...)
	case h.In != nil:
		cmd = h.In.In(cmd)
	}
	log := new(rig.Output)
	cmd.Stderr = log
	cmd.WaitDelay = time.Second // sessions whose client is gone keep it open
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	log.Await(t, 0, regexp.MustCompile("Server listening on "+regexp.QuoteMeta(addr.Addr().String())))
	return &sshd{host: h, addr: addr, user: me.Username, cmd: cmd}
}

// ssh returns a client that runs a command of sh on the server.
func (s *sshd) ssh(flag, shell string) *exec.Cmd {
	return exec.Command("ssh", append(s.flags(), flag, s.destination(), underSh(shell))...)
}

// flags are those of a client. options are the options among them, for programs that
// start ssh.
func (s *sshd) flags() []string {
	flags := []string{"-F", "/dev/null"}
	for _, option := range s.options() {
		flags = append(flags, "-o", option)
	}
	return flags
}

func (s *sshd) options() []string {
	options := []string{"IdentityFile=" + s.host.Path("id"), fmt.Sprintf("Port=%d", s.addr.Port()),
		"UserKnownHostsFile=" + s.host.Path("known_hosts_ssh"), "IdentitiesOnly=yes"}
	if s.cipher != "" {
		options = append(options, "Ciphers="+s.cipher)
	}
	return options
}

// destination names the user and the server.
func (s *sshd) destination() string { return s.user + "@" + s.addr.Addr().String() }
