//go:build linux || darwin

package rig

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/quicterm/quicterm/bench/netem"
)

// Know adds a server's public key file to the user's known hosts.
func (h *Host) Know(addr netip.AddrPort, file string) {
	h.T.Helper()
	h.KnowName(addr.Addr().String(), addr.Port(), file)
}

// KnowName is Know for a server with a name.
func (h *Host) KnowName(name string, port uint16, file string) {
	h.T.Helper()
	known, _ := os.ReadFile(h.Path("known_hosts"))
	key, err := os.ReadFile(file)
	if err != nil {
		h.T.Fatal(err)
	}
	h.Write("known_hosts", string(known)+fmt.Sprintf("[%s]:%d %s", name, port, key))
}

// Proxy puts a link between the user and the daemon. Clients that Via starts at its
// address use it.
func (h *Host) Proxy(cfg netem.Config) *netem.Proxy {
	h.T.Helper()
	p, err := netem.NewProxy(h.Addr, cfg, 1)
	if err != nil {
		h.T.Fatal(err)
	}
	h.T.Cleanup(func() { p.Close() })
	h.Know(p.Addr(), h.Path("host_key.pub"))
	return p
}

// QT returns a command of the client for this host: the subcommand, then its
// arguments after the host.
func (h *Host) QT(subcommand string, args ...string) *exec.Cmd {
	return h.Via(h.Addr, subcommand, nil, args...)
}

// Via returns a command of the client for a daemon at an address.
func (h *Host) Via(addr netip.AddrPort, subcommand string, flags []string, args ...string) *exec.Cmd {
	h.T.Helper()
	return h.To(addr.Addr().String(), addr.Port(), subcommand, flags, args...)
}

// To is Via for a server with a name.
func (h *Host) To(name string, port uint16, subcommand string, flags []string, args ...string) *exec.Cmd {
	h.T.Helper()
	flags = append([]string{"-p", strconv.Itoa(int(port))}, flags...)
	return h.Named(name, h.sshConfig(), subcommand, flags, args...)
}

// sshConfig writes ssh's configuration with the user's keys and known hosts, and returns its file.
func (h *Host) sshConfig() string {
	var b strings.Builder
	fmt.Fprintf(&b, "UserKnownHostsFile %s\nGlobalKnownHostsFile none\n", h.Path("known_hosts"))
	for _, name := range h.Identities {
		fmt.Fprintf(&b, "IdentityFile %s\n", h.Path(name))
	}
	h.Write("ssh_config_user", b.String())
	return h.Path("ssh_config_user")
}

// Named returns a command of the client for a server that a file of ssh's configuration names.
func (h *Host) Named(name, config, subcommand string, flags []string, args ...string) *exec.Cmd {
	h.T.Helper()
	h.Write("config/quicterm/qt.toml", toml(h.Client))
	all := append([]string{subcommand, "-F", config}, flags...)
	all = append(all, name)
	cmd := exec.Command(filepath.Join(h.Bin, "qt"), append(all, args...)...)
	cmd.Env = h.Env()
	return cmd
}

// Env returns the environment of the user's programs.
func (h *Host) Env() []string {
	env := []string{"XDG_CONFIG_HOME=" + h.Path("config"), "XDG_STATE_HOME=" + h.Path("client-state"), "TERM=xterm",
		"SHLVL=1", "LC_NAME=carried over", "SECRET=not"}
	for _, name := range []string{"PATH", "HOME", "USER", "GORACE"} {
		env = append(env, name+"="+os.Getenv(name))
	}
	return env
}
