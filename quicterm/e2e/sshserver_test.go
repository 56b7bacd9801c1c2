//go:build linux || darwin

package e2e

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
)

// sshdFile is where sshd is: ordinary users do not have it in their PATH.
const sshdFile = "/usr/sbin/sshd"

// startSSHD starts OpenSSH's server at the address of the host's daemon, with its key and for the
// account that runs the tests, whose home is the folder home of the host. It returns the
// name of a file for ssh -F in which the server has the name server. path comes first in the
// PATH of logins. options are further lines of sshd_config.
func startSSHD(t *testing.T, h *rig.Host, path string, options ...string) (config string) {
	t.Helper()
	for _, program := range []string{sshdFile, "ssh"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	os.Mkdir("/run/sshd", 0o755) // as rig.Host.SSHD does: it stays, for tests beside this one
	if err := os.MkdirAll(h.Path("home"), 0o700); err != nil {
		t.Fatal(err)
	}
	server := append([]string{
		"HostKey " + h.Path("host_key"), "AuthorizedKeysFile " + h.Path("authorized_keys"),
		"PidFile none", "StrictModes no", "PermitRootLogin yes", "UseDNS no", "UsePAM no",
		"PasswordAuthentication no", "KbdInteractiveAuthentication no", "Subsystem sftp internal-sftp",
		"SetEnv HOME=" + h.Path("home") + " XDG_CONFIG_HOME=" + h.Path("home/.config") + " XDG_STATE_HOME=" + h.Path("home/.state") +
			" PATH=" + strings.TrimPrefix(path+":", ":") + os.Getenv("PATH"),
	}, options...)
	h.Write("sshd_config", strings.Join(server, "\n")+"\n")
	address, port := h.Addr.Addr().String(), 0
	for range 10 { // another process may take the free port
		port = freePort(t)
		cmd := exec.Command(sshdFile, "-D", "-e", "-f", h.Path("sshd_config"), "-o", fmt.Sprintf("ListenAddress=%s:%d", address, port))
		if h.In != nil {
			cmd = h.In.In(cmd)
		}
		log := new(rig.Output)
		cmd.Stderr = log
		cmd.WaitDelay = time.Second // logins whose client is gone keep it open
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if found := log.Await(t, 0, regexp.MustCompile("(?s)(listening on [0-9])|.*[Bb]ind.*\n")); found[1] == "" {
			cmd.Wait()
			continue
		}
		t.Cleanup(func() {
			cmd.Process.Kill()
			cmd.Wait()
			if t.Failed() {
				t.Logf("log of sshd:\n%s", log.String())
			}
		})
		h.KnowName(address, uint16(port), h.Path("host_key.pub"))
		h.Write("ssh_config", fmt.Sprintf(`
Host server
	HostName %s
	Port %d
	IdentityFile %s
	IdentitiesOnly yes
	UserKnownHostsFile %s
	StrictHostKeyChecking yes
`, address, port, h.Path("id"), h.Path("known_hosts")))
		return h.Path("ssh_config")
	}
	t.Fatal("no free port")
	return ""
}

// freePort returns a TCP port of the loopback interface that was free just now, and that the
// kernel gives to no socket by itself.
func freePort(t *testing.T) int {
	t.Helper()
	const first, count = 10_000, 10_000 // rig has those above
	for tries := 1; ; tries++ {
		l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: first + rand.IntN(count)})
		if err == nil {
			defer l.Close()
			return l.Addr().(*net.TCPAddr).Port
		}
		if tries == 100 {
			t.Fatal(err)
		}
	}
}
