//go:build linux || darwin

package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// noTerminal keeps a process from asking questions on the terminal that the
// tests may run on.
var noTerminal = &syscall.SysProcAttr{Setsid: true}

// dialOnly connects to a daemon and does nothing else.
func dialOnly(t *testing.T, addr netip.AddrPort) *carrier.QUIC {
	t.Helper()
	socket, err := carrier.ListenUDP()
	if err != nil {
		t.Fatal(err)
	}
	link, err := carrier.DialQUIC(context.Background(), socket, addr,
		&tls.Config{InsecureSkipVerify: true, NextProtos: []string{wire.ALPN}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { link.Close() })
	return link
}

// refused runs a command that must fail for a reason of ours: with 255, nothing
// on standard output, and one line that says why.
func refused(t *testing.T, cmd *exec.Cmd, why string) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = nil, &out, &errs
	if got := status(t, cmd.Run()); got != 255 {
		t.Errorf("exit status %d, want 255", got)
	}
	if out.Len() > 0 {
		t.Errorf("standard output: %q", out.String())
	}
	line := errs.String()
	if strings.Count(line, "\n") != 1 || !regexp.MustCompile(`^qt: .*`+why).MatchString(line) {
		t.Errorf("said %q, want one line with %q", line, why)
	}
}

// ok runs a command that must print what is expected.
func ok(t *testing.T, cmd *exec.Cmd, want string) {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != want {
		t.Errorf("got %q, %v; want %q", out, err, want)
	}
}

func TestUnknownHost(t *testing.T) {
	h := newHost(t)
	h.start()
	h.write("known_hosts", "")
	cmd := h.qt("connect", "true")
	cmd.SysProcAttr = noTerminal
	refused(t, cmd, "is not known: ssh-ed25519 SHA256:.*connect once from a terminal")

	x := open(t, h.qt("connect", "echo let in"))
	x.expect(`not known.*\r\n.*SHA256:[^ ]+\r\n.*\(yes/no\)\? `)
	x.send("what\r")
	x.expect("yes or no: ")
	x.send("no\r")
	x.expect("is not known")
	if got := x.exit(); got != 255 {
		t.Errorf("exit status after no: %d, want 255", got)
	}

	x = open(t, h.qt("connect", "echo let in"))
	x.expect(`\(yes/no\)\? `)
	x.send("yes\r")
	x.expect("let in\r\n")
	ok(t, h.qt("connect", "echo known"), "known\n")
}

func TestChangedHost(t *testing.T) {
	h := newHost(t)
	h.start()
	other := h.newKey("other")
	h.write("known_hosts", "")
	h.know(h.addr, h.path("other.pub"))
	refused(t, h.qt("connect", "true"), "has changed.*known_hosts:1.*listening in")
	// Not even somebody at a terminal is asked.
	x := open(t, h.qt("connect", "true"))
	x.expect("has changed")
	if got := x.exit(); got != 255 {
		t.Errorf("exit status %d, want 255", got)
	}
	// As the key of the server, a revoked one is refused too.
	h.stop(syscall.SIGKILL)
	h.write("host_key", h.read("other"))
	h.write("host_key.pub", h.read("other.pub"))
	h.start()
	h.write("known_hosts", "@revoked * "+string(ssh.MarshalAuthorizedKey(other)))
	refused(t, h.qt("connect", "true"), "is revoked")
}

// What ssh knows of a host is good for the same key at our port.
func TestHostKnownToSSH(t *testing.T) {
	h := newHost(t)
	h.start()
	h.write("known_hosts", "127.0.0.1 "+h.read("host_key.pub"))
	ok(t, h.qt("connect", "echo in"), "in\n")
	h.newKey("other")
	h.write("known_hosts", "127.0.0.1 "+h.read("other.pub"))
	cmd := h.qt("connect", "true")
	cmd.SysProcAttr = noTerminal
	refused(t, cmd, "is not known")
}

func TestWrongKey(t *testing.T) {
	h := newHost(t)
	h.start()
	h.newKey("id") // not the one in authorized_keys
	refused(t, h.qt("connect", "true"), "permission denied by 127.0.0.1 for "+me(t))
	h.log.await(t, 0, regexp.MustCompile("client refused.*denied.*not in authorized_keys"))
	os.Remove(h.path("id"))
	os.Remove(h.path("id.pub"))
	refused(t, h.qt("connect", "true"), "no keys to prove who you are: .*ssh-add")
}

func TestWrongUser(t *testing.T) {
	h := newHost(t)
	h.start()
	refused(t, h.via(h.addr, "connect", []string{"-l", "no-such-user"}, "true"), "permission denied by 127.0.0.1 for no-such-user")
	h.log.await(t, 0, regexp.MustCompile("client refused.*no such account"))
}

// A server does not believe a file that others may change.
func TestAuthorizedKeysWritableByOthers(t *testing.T) {
	h := newHost(t)
	h.start()
	if err := os.Chmod(h.path("authorized_keys"), 0o666); err != nil {
		t.Fatal(err)
	}
	refused(t, h.qt("connect", "true"), "permission denied")
	h.log.await(t, 0, regexp.MustCompile("others may write to it"))
}

// The second key does: it is found without a touch of the first.
func TestSecondKey(t *testing.T) {
	h := newHost(t)
	h.newKey("first")
	h.client["identity_files"] = `["` + h.path("first") + `", "` + h.path("id") + `"]`
	h.start()
	ok(t, h.qt("connect", "echo in"), "in\n")
}

func TestAgent(t *testing.T) {
	h := newHost(t)
	h.start()
	key, err := ssh.ParseRawPrivateKey([]byte(h.read("id")))
	if err != nil {
		t.Fatal(err)
	}
	keyring := agent.NewKeyring()
	if err := keyring.Add(agent.AddedKey{PrivateKey: key}); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", h.path("agent"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go agent.ServeAgent(keyring, c)
		}
	}()
	os.Remove(h.path("id"))
	cmd := h.qt("connect", "echo in")
	cmd.Env = append(cmd.Env, "SSH_AUTH_SOCK="+h.path("agent"))
	ok(t, cmd, "in\n")
}

func TestPassphrase(t *testing.T) {
	h := newHost(t)
	h.start()
	key, err := ssh.ParseRawPrivateKey([]byte(h.read("id")))
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte("open sesame"))
	if err != nil {
		t.Fatal(err)
	}
	h.write("id", string(pem.EncodeToMemory(block)))
	cmd := h.qt("connect", "true")
	cmd.SysProcAttr = noTerminal
	refused(t, cmd, "permission denied.*no terminal to ask")
	x := open(t, h.qt("connect", "echo let in"))
	x.expect("Enter passphrase for key '.*': ")
	x.send("open sesame\r")
	x.expect("let in\r\n")
	if strings.Contains(x.out.String(), "sesame") {
		t.Error("the passphrase was shown")
	}
}

// A key with a command of its own runs that, and reaches no other session.
func TestForcedCommand(t *testing.T) {
	h := newHost(t)
	h.start()
	x := h.shell(h.addr, "-s", "free")
	key := string(ssh.MarshalAuthorizedKey(h.key))
	h.write("authorized_keys", `command="echo forced: $SSH_ORIGINAL_COMMAND",restrict `+key)
	ok(t, h.qt("connect", "rm", "-rf"), "forced: rm -rf\n")
	refused(t, h.via(h.addr, "connect", []string{"-t"}, "true"), "may not have a terminal")
	out, err := h.qt("ls").Output()
	if err != nil || strings.Contains(string(out), "free") {
		t.Errorf("sees the sessions of other keys: %v\n%s", err, out)
	}
	refused(t, h.qt("kill", "free"), `there is no session "free"`)
	h.write("authorized_keys", `restrict `+key)
	y := open(t, h.qt("attach", "free"))
	y.expect("may not have a terminal")
	h.write("authorized_keys", key)
	x.run("echo un''touched", "untouched")
}

// Those who do not get in do not keep others out for long.
func TestTooManyOnTheirWayIn(t *testing.T) {
	h := newHost(t)
	h.settings["max_unauthenticated"] = "2"
	h.settings["auth_timeout"] = `"2s"`
	h.start()
	for range 2 {
		// A client that says nothing.
		dialOnly(t, h.addr)
	}
	refused(t, h.qt("connect", "echo in"), "the server is busy letting others in: try again")
	h.log.await(t, 0, regexp.MustCompile("too many unauthenticated clients"))
	h.log.await(t, 0, regexp.MustCompile("(?s)client refused.*no stream.*client refused.*no stream"))
	ok(t, h.qt("connect", "echo in"), "in\n")
}

func TestLimits(t *testing.T) {
	h := newHost(t)
	h.settings["max_sessions_per_user"] = "1"
	h.start()
	h.shell(h.addr, "-s", "one")
	refused(t, h.qt("connect", "true"), "has 1 sessions already, and max_sessions_per_user is 1")
	refused(t, h.via(h.addr, "connect", []string{"-s", "bad name"}, "true"), "cannot be a session's name")
	h.settings["max_buffer_total"] = `"1B"`
	h.settings["max_sessions_per_user"] = "5"
	h.stop(syscall.SIGTERM)
	h.start()
	refused(t, h.qt("connect", "true"), "max_buffer_total is 1B")
}

func TestNobodyAnswers(t *testing.T) {
	h := newHost(t)
	h.start()
	h.stop(syscall.SIGTERM)
	refused(t, h.qt("connect", "true"), fmt.Sprintf("127.0.0.1, UDP port %d: no answer.*is qtd running there", h.addr.Port()))
}
