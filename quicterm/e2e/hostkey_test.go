//go:build linux || darwin

package e2e

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/bench/rig"
)

// An unknown host key is accepted only by an answer on a terminal, and then kept.
func TestUnknownHost(t *testing.T) {
	h := newHost(t)
	h.Start()
	h.Write("known_hosts", "")
	cmd := h.QT("connect", "true")
	cmd.SysProcAttr = noTerminal
	wantError(t, cmd, "is not known: ssh-ed25519 SHA256:.*connect once from a terminal")

	x := rig.Open(t, h.QT("connect", "echo let in"))
	x.Expect(`not known.*\r\n.*SHA256:[^ ]+\r\n.*\(yes/no\)\? `)
	x.Send("what\r")
	x.Expect(`what\r\n.*not known.*\r\n.*\r\n.*\(yes/no\)\? `)
	x.Send("no\r")
	x.Expect("you did not accept the server's key")
	if got := x.Exit(); got != 255 {
		t.Errorf("exit status after no: %d, want 255", got)
	}

	x = rig.Open(t, h.QT("connect", "echo let in"))
	x.Expect(`\(yes/no\)\? `)
	x.Send("\x03")
	x.Expect(`\r\nqt: ended by SIGINT`)
	x.Exit()

	x = rig.Open(t, h.QT("connect", "echo let in"))
	x.Expect(`\(yes/no\)\? `)
	x.Send("yes\r")
	x.Expect("let in\r\n")
	wantOutput(t, h.QT("connect", "echo known"), "known\n")
}

// A host key that cannot be written to known_hosts is accepted for one connection.
func TestUnknownHostNotKept(t *testing.T) {
	h := newHost(t)
	h.Start()
	for _, file := range []string{"/dev/null", "/proc/known_hosts"} {
		cmd := h.QT("connect", "echo let in")
		h.Write("ssh_config_user", strings.Replace(h.Read("ssh_config_user"), h.Path("known_hosts"), file, 1))
		x := rig.Open(t, cmd)
		x.Expect(`\(yes/no\)\? `)
		x.Send("yes\r")
		x.Expect("qt: the key of .* is accepted for this connection only: it (was|could not be) saved.*\r\n")
		x.Expect("let in\r\n")
	}
}

// A changed host key is refused without a question, and so is a revoked one.
func TestChangedHost(t *testing.T) {
	h := newHost(t)
	h.Start()
	other := h.NewKey("other")
	h.Write("known_hosts", "")
	h.Know(h.Addr, h.Path("other.pub"))
	wantWarning(t, h.QT("connect", "true"), "THE KEY OF THE SERVER HAS CHANGED", other, "has changed.*known_hosts:1.*may be an attack")
	// On a terminal as well.
	x := rig.Open(t, h.QT("connect", "true"))
	x.Expect("has changed")
	if got := x.Exit(); got != 255 {
		t.Errorf("exit status %d, want 255", got)
	}
	// A revoked key of the server.
	h.Stop(syscall.SIGKILL)
	h.Write("host_key", h.Read("other"))
	h.Write("host_key.pub", h.Read("other.pub"))
	h.Start()
	h.Write("known_hosts", "@revoked * "+string(ssh.MarshalAuthorizedKey(other)))
	wantError(t, h.QT("connect", "true"), "is revoked")
}

// wantWarning checks that a client refuses a server with a loud warning that names both keys.
func wantWarning(t *testing.T, cmd *exec.Cmd, title string, known ssh.PublicKey, why string) {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if got := exitStatus(t, err); got != 255 {
		t.Errorf("exit status %d, want 255", got)
	}
	want := "^qt: @@@ WARNING: " + title + ".* @@@\n" +
		`qt: the key of .* is ssh-ed25519 SHA256:\S+\n` +
		"qt: known is ssh-ed25519 " + regexp.QuoteMeta(ssh.FingerprintSHA256(known)) + ` \(.*/known_hosts:1\)\n` +
		"qt: An attacker may be .*\nqt: .*" + why
	if !regexp.MustCompile(want).Match(out) {
		t.Errorf("%q, want a match of %q", out, want)
	}
}

// A host key that ssh knows for port 22 is accepted at the port of the daemon. Where ssh knows
// another key, that is said loudly, and yes is no answer.
func TestHostKnownToSSH(t *testing.T) {
	h := newHost(t)
	h.Start()
	h.Write("known_hosts", "127.0.0.1 "+h.Read("host_key.pub"))
	wantOutput(t, h.QT("connect", "echo in"), "in\n")
	other := h.NewKey("other")
	h.Write("known_hosts", "127.0.0.1 "+h.Read("other.pub"))
	const title = "THE SERVER HAS ANOTHER KEY THAN SSH KNOWS"
	cmd := h.QT("connect", "true")
	cmd.SysProcAttr = noTerminal
	wantWarning(t, cmd, title, other, "ssh knows another key for the host of .*connect once from a terminal")

	x := rig.Open(t, h.QT("connect", "echo let in"))
	x.Expect(title + `[^@]*@@@\r\n`)
	fingerprint := x.Expect(`the key of \S+ is ssh-ed25519 (SHA256:\S+)\r\n`)[1]
	x.Expect("known is ssh-ed25519 " + regexp.QuoteMeta(ssh.FingerprintSHA256(other)) + ` \(.*known_hosts:1\)`)
	x.Expect("type its fingerprint to connect;\r\notherwise type no: ")
	x.Send("yes\r")
	x.Expect("otherwise type no: ")
	x.Send(fingerprint + "\r")
	x.Expect("let in\r\n")
	wantOutput(t, h.QT("connect", "echo known"), "known\n")
}

// sshServer is a server of ssh that lets everybody in, until the end of the test. It returns
// a function that reports whether a client has accepted the server since the last call.
func sshServer(t *testing.T, addr netip.AddrPort, signer ssh.Signer) (accepted func() bool) {
	t.Helper()
	l, err := net.Listen("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	var seen atomic.Bool
	conf := &ssh.ServerConfig{NoClientAuth: true, NoClientAuthCallback: func(ssh.ConnMetadata) (*ssh.Permissions, error) {
		seen.Store(true)
		return nil, errors.New("that is all")
	}}
	conf.AddHostKey(signer)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				ssh.NewServerConn(c, conf)
			}()
		}
	}()
	return func() bool { return seen.Swap(false) }
}

// qt trusts the servers that ssh trusts, by the same files and options, at the same name and
// port. Where it does not, it is because qt is stricter.
func TestHostKeysAsSSH(t *testing.T) {
	skipUnderRace(t)
	for _, tool := range []string{"ssh", "ssh-keygen"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	h := newHost(t)
	keygen := func(args ...string) {
		t.Helper()
		cmd := exec.Command("ssh-keygen", args...)
		cmd.Dir = h.Dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen %v: %v\n%s", args, err, out)
		}
	}
	h.NewKey("ca")
	h.NewKey("other")
	keygen("-q", "-s", "ca", "-I", "host", "-h", "-n", "127.0.0.1,::1", "-V", "-1h:+1h", "host_key.pub")
	private, err := ssh.ParsePrivateKey([]byte(h.Read("host_key")))
	if err != nil {
		t.Fatal(err)
	}
	cert, _, _, _, err := ssh.ParseAuthorizedKey([]byte(h.Read("host_key-cert.pub")))
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewCertSigner(cert.(*ssh.Certificate), private)
	if err != nil {
		t.Fatal(err)
	}
	h.Start()
	sshPort := freePort(t)
	sshAccepted := sshServer(t, netip.AddrPortFrom(h.Addr.Addr(), uint16(sshPort)), signer)
	// ssh takes the server for one at the daemon's port.
	toServer := fmt.Sprintf("ProxyCommand=bash -c 'exec 3<>/dev/tcp/%v/%d; cat <&0 >&3 & exec cat <&3'", h.Addr.Addr(), sshPort)
	const no, yes, stricter, added = "no", "yes", "stricter", "added"
	h.Write("none_revoked", "")
	for _, test := range []struct{ name, knownHosts, strict, want string }{
		{"known", "{port} {key}", "yes", yes},
		{"known by ssh", "{host} {key}", "yes", yes},
		{"unknown", "", "ask", no}, // without a terminal
		{"unknown", "", "accept-new", added},
		{"unknown", "", "no", added},
		{"changed", "{port} {other}", "accept-new", no},
		{"changed", "{port} {other}", "no", stricter},
		{"another of ssh", "{host} {other}", "accept-new", stricter},
		{"revoked", "@revoked * {key}\n{port} {key}", "accept-new", no},
		{"authority", "@cert-authority 127.* {ca}", "yes", yes},
		{"another authority", "@cert-authority * {other}", "yes", no},
		{"authority's algorithm", "@cert-authority 127.* {ca}", "yes\nCASignatureAlgorithms rsa-sha2-512", no},
		{"algorithm", "{port} {key}", "yes\nHostKeyAlgorithms rsa-sha2-512", no},
		{"certificate's algorithm", "@cert-authority 127.* {ca}", "yes\nHostKeyAlgorithms ssh-ed25519-cert-v01@openssh.com", yes},
		{"key's algorithm", "@cert-authority 127.* {ca}", "yes\nHostKeyAlgorithms ssh-ed25519", no},
		{"revoked in a file", "{port} {key}", "yes\nRevokedHostKeys " + h.Path("host_key.pub"), no},
		{"authority revoked in a file", "@cert-authority * {ca}", "yes\nRevokedHostKeys " + h.Path("ca.pub"), no},
		{"another revoked in a file", "{port} {key}", "yes\nRevokedHostKeys " + h.Path("other.pub"), yes},
		{"nothing revoked in a file", "{port} {key}", "yes\nRevokedHostKeys " + h.Path("none_revoked"), yes},
		{"no file of revoked keys", "{port} {key}", "yes\nRevokedHostKeys " + h.Path("none"), no},
		{"hashed", "", "accept-new\nHashKnownHosts yes", added},
	} {
		name := fmt.Sprintf("%s, StrictHostKeyChecking %s", test.name, test.strict)
		content := strings.NewReplacer("{port}", fmt.Sprintf("[127.0.0.1]:%d", h.Addr.Port()), "{host}", "127.0.0.1",
			"{key}", h.Read("host_key.pub"), "{other}", h.Read("other.pub"), "{ca}", h.Read("ca.pub")).Replace(test.knownHosts)
		run := func(cmd *exec.Cmd) error {
			h.Write("known_hosts", content)
			h.Write("ssh_config", fmt.Sprintf("UserKnownHostsFile %s\nGlobalKnownHostsFile none\nStrictHostKeyChecking %s\nIdentityFile %s\nIdentityAgent none\n",
				h.Path("known_hosts"), test.strict, h.Path("id")))
			cmd.SysProcAttr = noTerminal
			return cmd.Run()
		}
		keys := regexp.MustCompile(`(?m)^(?:(\|1\|)\S+|(\S+)) (.*)$`) // less the hashes, which have salt
		line := func() string {
			return keys.ReplaceAllString(strings.Replace(h.Read("known_hosts"), content, "", 1), "$1$2 $3")
		}
		run(exec.Command("ssh", "-F", h.Path("ssh_config"), "-o", "BatchMode=yes", "-o", toServer, "-p", fmt.Sprint(h.Addr.Port()), "127.0.0.1", "true"))
		bySSH, addedBySSH := sshAccepted(), line()
		cmd := h.Via(h.Addr, "connect", []string{"-F", h.Path("ssh_config")}, "true")
		h.Write("config/quicterm/qt.toml", "")
		byQT := run(cmd) == nil
		if bySSH != (test.want != no) || byQT != (test.want == yes || test.want == added) {
			t.Errorf("%s: ssh accepts: %v, qt accepts: %v, want %s", name, bySSH, byQT, test.want)
		}
		if got := h.Read("known_hosts") != content; got != (test.want == added) {
			t.Errorf("%s: key added: %v", name, got)
		}
		if got := line(); test.want == added && got != addedBySSH {
			t.Errorf("%s: added %q, ssh %q", name, got, addedBySSH)
		}
	}
}
