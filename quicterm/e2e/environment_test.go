//go:build linux || darwin

package e2e

import (
	"cmp"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// environment returns the variables of a session that a client starts with some of its own.
func environment(t *testing.T, cmd *exec.Cmd, own ...string) map[string]string {
	t.Helper()
	cmd.Env = append(cmd.Env, own...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	env := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		env[name] = value
	}
	return env
}

// A session has the variables by which programs see that it is remote. The daemon listens on
// all addresses, so the server's address is that of the connection.
func TestSSHVariables(t *testing.T) {
	h := newHost(t)
	h.Settings["listen"] = `[":0"]`
	h.Start()
	for _, ip := range []string{"127.0.0.1", "::1"} {
		addr := netip.AddrPortFrom(netip.MustParseAddr(ip), h.Addr.Port())
		h.Know(addr, h.Path("host_key.pub"))
		env := environment(t, h.Via(addr, "connect", nil, "env"))
		connection := regexp.MustCompile(fmt.Sprintf(`^%[1]s ([1-9]\d*) %[1]s %d$`, ip, addr.Port())).FindStringSubmatch(env["SSH_CONNECTION"])
		if connection == nil {
			t.Fatalf("SSH_CONNECTION is %q", env["SSH_CONNECTION"])
		}
		if want := fmt.Sprintf("%s %s %d", ip, connection[1], addr.Port()); env["SSH_CLIENT"] != want {
			t.Errorf("SSH_CLIENT is %q, want %q", env["SSH_CLIENT"], want)
		}
	}
}

// A client cannot replace the session's own variables, even if the server accepts all.
func TestOwnVariables(t *testing.T) {
	h := newHost(t)
	h.Settings["accept_env"] = `["*"]`
	h.Start()
	own := environment(t, h.QT("connect", "env"))
	h.Client["send_env"] = `["*"]`
	names := []string{"HOME", "USER", "LOGNAME", "SHELL", "PATH", "QUICTERM_SESSION", "QUICTERM_NEW",
		"SSH_CONNECTION", "SSH_CLIENT", "SSH_ORIGINAL_COMMAND", "SSH_AUTH_SOCK", "SSH_TTY"}
	value := map[string]string{"PATH": "/forged:" + os.Getenv("PATH")} // qt finds ssh in it
	var forged []string
	for _, name := range names {
		value[name] = cmp.Or(value[name], "/forged")
		forged = append(forged, name+"="+value[name])
	}
	env := environment(t, h.QT("connect", "env"), append(forged, "OTHER=accepted")...)
	for _, name := range names {
		if _, set := own[name]; env[name] == value[name] || set != (env[name] != "") {
			t.Errorf("%s is %q, and %q without the client's", name, env[name], own[name])
		}
	}
	if env["OTHER"] != "accepted" {
		t.Error("the server did not accept a variable that it has no value for")
	}
}
