//go:build linux || darwin

package e2e

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/quicterm/quicterm/bench/rig"
)

// withoutSSH makes a client find no ssh program.
func (s *sshHost) withoutSSH(cmd *exec.Cmd) *exec.Cmd {
	cmd.Env = append(cmd.Env, "PATH="+s.Path("none"))
	return cmd
}

// Where there is no ssh program, qt logs in itself, and the session moves to QUIC as well.
func TestOwnLogin(t *testing.T) {
	s := newSSHHost(t)
	s.Serve()
	wantOutput(t, s.withoutSSH(s.QT("connect", nil, "echo in")), "in\n")
	x := rig.Open(t, s.withoutSSH(s.QT("connect", []string{"-t", "--bootstrap", "ssh"}, "exec env PS1='$ ' HISTFILE= sh")))
	x.Expect(`\$ `)
	awaitQUIC(x)
	x.Send("exit 3\r")
	if status := x.Exit(); status != 3 {
		t.Errorf("exit status %d, want 3\n%s", status, x.Out)
	}
	s.BlockNetwork() // by a ProxyCommand
	wantError(t, s.withoutSSH(s.QT("connect", []string{"--bootstrap", "ssh"}, "true")), "has a ProxyCommand, which needs the ssh program")
}

// qt install needs no ssh program either.
func TestOwnLoginInstalls(t *testing.T) {
	s := newSSHHost(t)
	s.Serve()
	s.remove("remote/qtd")
	install := func(flags ...string) *exec.Cmd { return s.withoutSSH(s.QT("install", flags)) }
	qtd := s.Path("home/.local/bin/qtd")
	wantSays(t, install(), `qt: copying qtd \S+ for .* to target\nqt: qtd \S+ on target is installed: `+qtd)
	mustOutput(t, exec.Command(qtd, "version"))
	wantSays(t, install(), `qt: target has this qtd already: qtd \S+, `+qtd)
	wantSays(t, install("--remove"), "qt: removed "+qtd+" from target; .*")
	wantError(t, install("--from", s.Path("id")), "could not install qtd on target: .*id is not a qtd")
	s.Write("authorized_keys", "")
	wantError(t, install(), `could not install qtd on target: ssh to target: .*: Permission denied \(publickey\)`)
}

// The user is asked for the server's key, before a passphrase, and Ctrl-C ends both.
func TestOwnLoginAsks(t *testing.T) {
	s := newSSHHost(t)
	s.Serve()
	s.protect("open sesame")
	s.SSH = append(s.SSH, "StrictHostKeyChecking ask", "HashKnownHosts yes")
	s.Write("known_hosts_ssh", "")
	open := func() *rig.Terminal {
		return rig.Open(t, s.withoutSSH(s.QT("connect", []string{"--bootstrap", "ssh"}, "echo let in")))
	}
	x := open()
	x.Expect(regexp.QuoteMeta(fmt.Sprintf("The server [127.0.0.1]:%d is not known.", s.SSHD.Port())))
	x.Expect(`\(yes/no\)\? `)
	x.Send("\x03")
	x.Expect("qt: ended by SIGINT\r\n")
	if status := x.Exit(); status != 130 {
		t.Errorf("exit status %d after Ctrl-C", status)
	}

	x = open()
	x.Expect(`\(yes/no\)\? `)
	x.Send("yes\r")
	x.Expect("Enter passphrase for key '.*': ")
	x.Send("wrong\r")
	x.Expect("Enter passphrase for key '.*': ")
	x.Send("open sesame\r")
	x.Expect("let in\r\n")
	if x.Exit(); strings.Contains(x.Out.String(), "sesame") {
		t.Error("the passphrase was shown")
	}
	if kept := s.Read("known_hosts_ssh"); !strings.HasPrefix(kept, "|1|") {
		t.Errorf("kept as %q", kept)
	}
	x = open()
	x.Expect("Enter passphrase for key '.*': ")
	x.Send("\x03")
	x.Expect("qt: ended by SIGINT\r\n")
	if status := x.Exit(); status != 130 {
		t.Errorf("exit status %d after Ctrl-C", status)
	}
	cmd := s.withoutSSH(s.QT("connect", []string{"--bootstrap", "ssh"}, "true"))
	cmd.SysProcAttr = noTerminal
	wantError(t, cmd, "Permission denied \\(publickey\\): .*no terminal to ask")
}

// A login leads through two jump hosts, as ssh's configuration says.
func TestOwnLoginJumps(t *testing.T) {
	s := newSSHHost(t)
	s.Serve()
	known := s.Read("known_hosts_ssh")
	var jumps []string
	for range 2 {
		addr, err := s.Host.SSHD("")
		if err != nil {
			t.Fatal(err)
		}
		jumps = append(jumps, addr.String())
		known += fmt.Sprintf("[127.0.0.1]:%d %s", addr.Port(), s.Read("host_key.pub"))
	}
	s.Write("known_hosts_ssh", known)
	s.SSH = append(s.SSH, "ProxyJump "+strings.Join(jumps, ","), "Host *")
	wantOutput(t, s.withoutSSH(s.QT("connect", []string{"--bootstrap", "ssh"}, "echo in")), "in\n")
	s.Log.Await(t, 0, regexp.MustCompile("(?s)(Accepted publickey.*){3}"))
	if n := strings.Count(s.Log.String(), "Accepted publickey"); n != 3 {
		t.Errorf("%d logins, want 3", n)
	}
}

// What is wrong with a host is said in one line.
func TestOwnLoginFails(t *testing.T) {
	s := newSSHHost(t)
	s.Serve()
	connect := func() *exec.Cmd {
		return s.withoutSSH(s.QT("connect", []string{"--bootstrap", "ssh"}, "true"))
	}
	s.Write("authorized_keys", "")
	wantError(t, connect(), "ssh to target: .*: Permission denied \\(publickey\\)")
	s.Write("authorized_keys", s.Read("id.pub"))
	s.Write("remote/qtd", "#!/bin/sh\necho qtd: broken >&2; exit 1\n")
	wantError(t, connect(), "qtd on target: broken")
	s.NewKey("other")
	s.Write("known_hosts_ssh", fmt.Sprintf("[127.0.0.1]:%d %s", s.SSHD.Port(), s.Read("other.pub")))
	out, err := connect().CombinedOutput()
	if status := exitStatus(t, err); status != 255 || !regexp.MustCompile("(?s)THE KEY OF THE SERVER HAS CHANGED.*may be an attack\n$").Match(out) {
		t.Errorf("a changed key: status %d, %s", status, out)
	}
	s.SSH = append(s.SSH, "Port 1")
	s.Write("known_hosts_ssh", "")
	wantError(t, connect(), "connect to host 127.0.0.1 port 1: .*refused")
}
