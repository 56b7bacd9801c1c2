//go:build linux || darwin

package e2e

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
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
	SSHD netip.AddrPort
	SSH  []string // of ssh, for this host
}

// newSSHHost prepares a host. Serve starts its sshd.
func newSSHHost(t *testing.T) *sshHost {
	t.Helper()
	t.Parallel()
	return newSSHHostAlone(t)
}

// newSSHHostAlone is newSSHHost for a test that has several, one after the other.
func newSSHHostAlone(t *testing.T) *sshHost {
	t.Helper()
	for _, program := range []string{sshdFile, "ssh"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	s := &sshHost{Host: newHostAlone(t)}
	s.Write("qtd.toml", fmt.Sprintf("runtime_dir = %q\nstate_dir = %q\nsshd_policy = \"ignore\"\ndetached_ttl = \"10m\"\n",
		s.Path("run"), s.Path("state")))
	s.Write("remote/qtd", fmt.Sprintf("#!/bin/sh\n[ \"$1\" = relay ] || set -- \"$@\" --config %s\nexec %s \"$@\"\n",
		s.Path("qtd.toml"), filepath.Join(bin, "qtd")))
	if err := os.Chmod(s.Path("remote/qtd"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(s.Path("home"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.endGranted)
	return s
}

// Serve starts sshd, with more lines of its configuration.
func (s *sshHost) Serve(config ...string) {
	s.T.Helper()
	config = append(config, "SetEnv PATH="+s.Path("remote")+":/usr/bin:/bin HOME="+s.Path("home"), "MaxStartups 1000", "LogLevel VERBOSE")
	var err error
	if s.SSHD, err = s.Host.SSHD(strings.Join(config, "\n")); err != nil {
		s.T.Fatal(err)
	}
	s.Write("known_hosts_ssh", fmt.Sprintf("[127.0.0.1]:%d %s", s.SSHD.Port(), s.Read("host_key.pub")))
}

// BlockNetwork makes the host one that only ssh reaches: by a command of its own, at an address to
// which the system sends nothing.
func (s *sshHost) BlockNetwork() {
	s.SSH = append(s.SSH, "HostName 255.255.255.255", "HostKeyAlias blocked",
		fmt.Sprintf("ProxyCommand %s -i -f %s", sshdFile, s.Path("sshd_config")))
	s.Write("known_hosts_ssh", "blocked "+s.Read("host_key.pub"))
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
		f, err := os.Open(lock)
		if err != nil {
			continue
		}
		defer f.Close()
		// Without a daemon that has it locked, the number may be that of any process by now.
		locked := func() bool { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil }
		if !locked() {
			continue
		}
		content, _ := os.ReadFile(lock)
		pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
		if err != nil || s.Daemon != nil && pid == s.Daemon.Process.Pid {
			continue
		}
		syscall.Kill(pid, syscall.SIGTERM)
		for until := time.Now().Add(rig.Patience); locked() && time.Now().Before(until); time.Sleep(time.Millisecond) {
		}
	}
}
