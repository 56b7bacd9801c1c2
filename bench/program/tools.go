//go:build linux

package program

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/topology"
)

// A Tooler is a Server that the programs of others reach through its clients.
type Tooler interface {
	// Tools writes scripts into a folder, for use on a machine:
	//
	//	remote HOST COMMAND...   runs a command on the server, as ssh does, with the flags in $REMOTE_FLAGS
	//	forward FLAG...          forwards as ssh -N does, until it is killed
	//	files ...                speaks SFTP on its standard input and output
	//	copy FROM... TO          copies as scp -r does
	//	proxy                    is a ProxyCommand for ssh to the sshd at the server's port 22
	//
	// HOST, of which any word will do, and FLAG are as of ssh. A program without one of them has no such script.
	Tools(t *measure.T, m *topology.Machine, dir string)
}

// writeTool writes a script that executes the words before its arguments, then the arguments, then the words after.
func writeTool(t *measure.T, dir, name string, env []string, first string, before []string, after ...string) {
	var b strings.Builder
	b.WriteString("#!/bin/sh\n")
	for _, variable := range env {
		key, value, _ := strings.Cut(variable, "=")
		if key != "PATH" {
			fmt.Fprintf(&b, "export %s=%s\n", key, shellQuote(value))
		}
	}
	fmt.Fprintf(&b, "%s\nexec %s %s %s\n", first, quoteAll(before), `"$@"`, quoteAll(after))
	if err := os.WriteFile(filepath.Join(dir, name), []byte(b.String()), 0o755); err != nil {
		t.Fatal(err)
	}
}

func quoteAll(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		if quoted[i] = w; w != remoteFlags {
			quoted[i] = shellQuote(w)
		}
	}
	return strings.Join(quoted, " ")
}

const (
	dropHost = "shift"    // the first argument
	dropAll  = "set --"   // the arguments
	keep     = ":"        // the arguments as they are
	noEnd    = "exec <&-" // forward reads nothing

	remoteFlags = "$REMOTE_FLAGS"
)

func (s quictermServer) Tools(t *measure.T, m *topology.Machine, dir string) {
	to := func(subcommand string) (before []string, host string, env []string) {
		cmd := s.host.To(m.Server, m.Port, subcommand, nil)
		last := len(cmd.Args) - 1
		return cmd.Args[:last], cmd.Args[last], cmd.Env
	}
	connect, host, env := to("connect")
	writeTool(t, dir, "remote", env, dropHost, append(connect, remoteFlags, host))
	forward, host, env := to("forward")
	writeTool(t, dir, "forward", env, noEnd, forward, host)
	files, host, env := to("sftp-pipe")
	writeTool(t, dir, "files", env, dropAll, append(files, host))
	proxy, host, env := to("ssh-proxy")
	writeTool(t, dir, "proxy", env, dropAll, append(proxy, host+".qt"))
	copies, _, env := to("cp")
	writeTool(t, dir, "copy", env, keep, append(copies, "-r", "-q"))
}

func (s sshServer) Tools(t *measure.T, _ *topology.Machine, dir string) {
	env, ssh := s.host.Env(), append([]string{"ssh"}, s.flags()...)
	with := func(words ...string) []string { return append(ssh[:len(ssh):len(ssh)], words...) }
	writeTool(t, dir, "remote", env, dropHost, with("-T", remoteFlags, s.destination()))
	writeTool(t, dir, "forward", env, noEnd, with("-N"), s.destination())
	writeTool(t, dir, "files", env, dropAll, with("-s", s.destination(), "sftp"))
	writeTool(t, dir, "copy", env, keep, append([]string{"scp", "-r", "-q"}, s.flags()...))
}

// Tools is that of tssh: the other rivals have none.
func (s rivalServer) Tools(t *measure.T, _ *topology.Machine, dir string) {
	tsshd, err := exec.LookPath("tsshd")
	if err != nil {
		t.Fatal(err)
	}
	tssh := append(append([]string{"tssh"}, s.flags()...), "--udp", "--tsshd-path", tsshd, "-o", "UdpMode=QUIC")
	with := func(words ...string) []string { return append(tssh[:len(tssh):len(tssh)], words...) }
	writeTool(t, dir, "remote", s.host.Env(), dropHost, with("-T", remoteFlags, s.destination()))
	writeTool(t, dir, "forward", s.host.Env(), noEnd, with("-N"), s.destination())
}
