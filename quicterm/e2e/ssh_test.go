//go:build linux || darwin

package e2e

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
)

// An sshHost is a host that ssh reaches: an sshd of the account that runs the tests, on the
// loopback interface, whose logins find qtd. A client knows it by the name in its configuration.
type sshHost struct {
	*rig.Host
	SSHD    netip.AddrPort
	Options []string // of sshd, as its configuration has them
	SSH     []string // of ssh, for this host
	sshLog  *rig.Output
}

// newSSHHost prepares a host. Serve starts its sshd.
func newSSHHost(t *testing.T) *sshHost {
	t.Helper()
	for _, program := range []string{sshdFile, "ssh"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	s := &sshHost{Host: newHost(t), sshLog: new(rig.Output)}
	s.Write("qtd.toml", fmt.Sprintf("runtime_dir = %q\nstate_dir = %q\nsshd_policy = \"ignore\"\ndetached_ttl = \"10m\"\npipe_ttl = \"10m\"\nexited_ttl = \"10m\"\n",
		s.Path("run"), s.Path("state")))
	s.Write("remote/qtd", fmt.Sprintf("#!/bin/sh\nexec %s \"$@\" --config %s\n", filepath.Join(bin, "qtd"), s.Path("qtd.toml")))
	if err := os.Chmod(s.Path("remote/qtd"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.endGranted)
	return s
}

// Serve starts sshd.
func (s *sshHost) Serve() {
	t := s.T
	t.Helper()
	const empty = "/run/sshd" // which its package makes at boot
	if os.Geteuid() == 0 && os.Mkdir(empty, 0o755) == nil {
		t.Cleanup(func() { os.Remove(empty) })
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.SSHD = l.Addr().(*net.TCPAddr).AddrPort()
	l.Close()
	options := append(s.Options,
		"ListenAddress "+s.SSHD.String(), "HostKey "+s.Path("host_key"), "AuthorizedKeysFile "+s.Path("authorized_keys"),
		"PidFile none", "StrictModes no", "PermitRootLogin yes", "UseDNS no", "UsePAM no", "MaxStartups 1000", "LogLevel VERBOSE",
		"SetEnv PATH="+s.Path("remote")+":/usr/bin:/bin HOME="+s.Path("home"))
	s.Write("sshd_config", strings.Join(options, "\n")+"\n")
	if err := os.MkdirAll(s.Path("home"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(sshdFile, "-D", "-e", "-f", s.Path("sshd_config"))
	cmd.Stderr = s.sshLog
	cmd.WaitDelay = time.Second // sessions keep it open
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Logf("log of sshd:\n%s", s.sshLog)
		}
	})
	s.sshLog.Await(t, 0, regexp.MustCompile("Server listening on"))
	s.Write("known_hosts_ssh", fmt.Sprintf("[127.0.0.1]:%d %s", s.SSHD.Port(), s.Read("host_key.pub")))
}

// Target is the host's name in ssh's configuration.
const target = "target"

// Config writes ssh's configuration, and returns the name of its file.
func (s *sshHost) Config() string {
	lines := append([]string{"Host " + target}, s.SSH...)
	lines = append(lines, "HostName 127.0.0.1", fmt.Sprintf("Port %d", s.SSHD.Port()),
		"IdentityFile "+s.Path("id"), "IdentitiesOnly yes", "UserKnownHostsFile "+s.Path("known_hosts_ssh"), "StrictHostKeyChecking yes")
	s.Write("ssh_config", strings.Join(lines, "\n    ")+"\n")
	return s.Path("ssh_config")
}

// QT returns a command of the client, which reaches the host by ssh first.
func (s *sshHost) QT(subcommand string, flags []string, args ...string) *exec.Cmd {
	s.T.Helper()
	s.Write("config/quicterm/qt.toml", clientSettings(s.Client))
	all := append([]string{subcommand, "-F", s.Config()}, flags...)
	all = append(all, target)
	cmd := exec.Command(filepath.Join(bin, "qt"), append(all, args...)...)
	cmd.Env = append(s.Env(), "XDG_STATE_HOME="+s.Path("client-state"))
	return cmd
}

func clientSettings(settings map[string]string) string {
	var b strings.Builder
	for key, value := range settings {
		fmt.Fprintf(&b, "%s = %s\n", key, value)
	}
	return b.String()
}

// endGranted ends the daemon that a grant has started.
func (s *sshHost) endGranted() {
	locks, _ := filepath.Glob(s.Path("run/*/qtd.lock"))
	for _, lock := range locks {
		content, _ := os.ReadFile(lock)
		pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
		if err != nil || s.Daemon != nil && pid == s.Daemon.Process.Pid {
			continue
		}
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
			continue
		}
		for until := time.Now().Add(rig.Patience); syscall.Kill(pid, 0) == nil && time.Now().Before(until); time.Sleep(time.Millisecond) {
		}
	}
}
