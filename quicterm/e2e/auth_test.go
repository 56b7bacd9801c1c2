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

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// noTerminal keeps a process from asking questions on the terminal that the
// tests may run on.
var noTerminal = &syscall.SysProcAttr{Setsid: true}

// dialOnly connects to a daemon and does nothing else.
func dialOnly(t *testing.T, addr netip.AddrPort) *carrier.QUIC {
	t.Helper()
	link, err := tryDial(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { link.Close() })
	return link
}

// tryDial is dialOnly for a daemon that may refuse it.
func tryDial(addr netip.AddrPort) (*carrier.QUIC, error) {
	socket, err := carrier.ListenUDP("")
	if err != nil {
		return nil, err
	}
	return carrier.DialQUIC(context.Background(), socket, addr,
		&tls.Config{InsecureSkipVerify: true, NextProtos: []string{wire.ALPN}})
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
	h.Start()
	h.Write("known_hosts", "")
	cmd := h.QT("connect", "true")
	cmd.SysProcAttr = noTerminal
	refused(t, cmd, "is not known: ssh-ed25519 SHA256:.*connect once from a terminal")

	x := rig.Open(t, h.QT("connect", "echo let in"))
	x.Expect(`not known.*\r\n.*SHA256:[^ ]+\r\n.*\(yes/no\)\? `)
	x.Send("what\r")
	x.Expect("yes or no: ")
	x.Send("no\r")
	x.Expect("is not known")
	if got := x.Exit(); got != 255 {
		t.Errorf("exit status after no: %d, want 255", got)
	}

	x = rig.Open(t, h.QT("connect", "echo let in"))
	x.Expect(`\(yes/no\)\? `)
	x.Send("yes\r")
	x.Expect("let in\r\n")
	ok(t, h.QT("connect", "echo known"), "known\n")
}

// A key that cannot be kept is accepted for once.
func TestUnknownHostNotKept(t *testing.T) {
	h := newHost(t)
	h.Start()
	for _, file := range []string{"/dev/null", "/proc/known_hosts"} {
		h.Client = map[string]string{"known_hosts_files": fmt.Sprintf("[%q]", file)}
		x := rig.Open(t, h.QT("connect", "echo let in"))
		x.Expect(`\(yes/no\)\? `)
		x.Send("yes\r")
		x.Expect("qt: the key of .* is accepted for this time, it (was not|could not be) kept.*\r\n")
		x.Expect("let in\r\n")
	}
}

func TestChangedHost(t *testing.T) {
	h := newHost(t)
	h.Start()
	other := h.NewKey("other")
	h.Write("known_hosts", "")
	h.Know(h.Addr, h.Path("other.pub"))
	refused(t, h.QT("connect", "true"), "has changed.*known_hosts:1.*listening in")
	// Not even somebody at a terminal is asked.
	x := rig.Open(t, h.QT("connect", "true"))
	x.Expect("has changed")
	if got := x.Exit(); got != 255 {
		t.Errorf("exit status %d, want 255", got)
	}
	// As the key of the server, a revoked one is refused too.
	h.Stop(syscall.SIGKILL)
	h.Write("host_key", h.Read("other"))
	h.Write("host_key.pub", h.Read("other.pub"))
	h.Start()
	h.Write("known_hosts", "@revoked * "+string(ssh.MarshalAuthorizedKey(other)))
	refused(t, h.QT("connect", "true"), "is revoked")
}

// What ssh knows of a host is good for the same key at our port.
func TestHostKnownToSSH(t *testing.T) {
	h := newHost(t)
	h.Start()
	h.Write("known_hosts", "127.0.0.1 "+h.Read("host_key.pub"))
	ok(t, h.QT("connect", "echo in"), "in\n")
	h.NewKey("other")
	h.Write("known_hosts", "127.0.0.1 "+h.Read("other.pub"))
	cmd := h.QT("connect", "true")
	cmd.SysProcAttr = noTerminal
	refused(t, cmd, "is not known")
}

func TestWrongKey(t *testing.T) {
	h := newHost(t)
	h.Start()
	h.NewKey("id") // not the one in authorized_keys
	refused(t, h.QT("connect", "true"), "permission denied by 127.0.0.1 for "+me(t))
	h.Log.Await(t, 0, regexp.MustCompile("client refused.*denied.*not in authorized_keys"))
	os.Remove(h.Path("id"))
	os.Remove(h.Path("id.pub"))
	refused(t, h.QT("connect", "true"), "no keys to prove who you are: .*ssh-add")
}

func TestWrongUser(t *testing.T) {
	h := newHost(t)
	h.Start()
	refused(t, h.Via(h.Addr, "connect", []string{"-l", "no-such-user"}, "true"), "permission denied by 127.0.0.1 for no-such-user")
	h.Log.Await(t, 0, regexp.MustCompile("client refused.*no such account"))
}

// A server does not believe a file that others may change.
func TestAuthorizedKeysWritableByOthers(t *testing.T) {
	h := newHost(t)
	h.Start()
	if err := os.Chmod(h.Path("authorized_keys"), 0o666); err != nil {
		t.Fatal(err)
	}
	refused(t, h.QT("connect", "true"), "permission denied")
	h.Log.Await(t, 0, regexp.MustCompile("others may write to it"))
}

// The second key does: it is found without a touch of the first.
func TestSecondKey(t *testing.T) {
	h := newHost(t)
	h.NewKey("first")
	h.Client["identity_files"] = `["` + h.Path("first") + `", "` + h.Path("id") + `"]`
	h.Start()
	ok(t, h.QT("connect", "echo in"), "in\n")
}

func TestAgent(t *testing.T) {
	h := newHost(t)
	h.Start()
	key, err := ssh.ParseRawPrivateKey([]byte(h.Read("id")))
	if err != nil {
		t.Fatal(err)
	}
	keyring := agent.NewKeyring()
	if err := keyring.Add(agent.AddedKey{PrivateKey: key}); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", h.Path("agent"))
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
	os.Remove(h.Path("id"))
	cmd := h.QT("connect", "echo in")
	cmd.Env = append(cmd.Env, "SSH_AUTH_SOCK="+h.Path("agent"))
	ok(t, cmd, "in\n")
}

func TestPassphrase(t *testing.T) {
	h := newHost(t)
	h.Start()
	key, err := ssh.ParseRawPrivateKey([]byte(h.Read("id")))
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte("open sesame"))
	if err != nil {
		t.Fatal(err)
	}
	h.Write("id", string(pem.EncodeToMemory(block)))
	cmd := h.QT("connect", "true")
	cmd.SysProcAttr = noTerminal
	refused(t, cmd, "permission denied.*no terminal to ask")
	x := rig.Open(t, h.QT("connect", "echo let in"))
	x.Expect("Enter passphrase for key '.*': ")
	x.Send("open sesame\r")
	x.Expect("let in\r\n")
	if strings.Contains(x.Out.String(), "sesame") {
		t.Error("the passphrase was shown")
	}
}

// A key with a command of its own runs that, and reaches no other session.
func TestForcedCommand(t *testing.T) {
	h := newHost(t)
	h.Start()
	x := h.Shell(h.Addr, "-s", "free")
	key := string(ssh.MarshalAuthorizedKey(h.Key))
	h.Write("authorized_keys", `command="echo forced: $SSH_ORIGINAL_COMMAND",restrict `+key)
	ok(t, h.QT("connect", "rm", "-rf"), "forced: rm -rf\n")
	refused(t, h.Via(h.Addr, "connect", []string{"-t"}, "true"), "may not have a terminal")
	out, err := h.QT("ls").Output()
	if err != nil || strings.Contains(string(out), "free") {
		t.Errorf("sees the sessions of other keys: %v\n%s", err, out)
	}
	refused(t, h.QT("kill", "free"), `there is no session "free"`)
	h.Write("authorized_keys", `restrict `+key)
	y := rig.Open(t, h.QT("attach", "free"))
	y.Expect("may not have a terminal")
	h.Write("authorized_keys", key)
	x.Run("echo un''touched", "untouched")
}

// Those who do not get in do not keep others out for long.
func TestTooManyOnTheirWayIn(t *testing.T) {
	h := newHost(t)
	h.Settings["max_unauthenticated"] = "2"
	h.Settings["auth_timeout"] = `"2s"`
	h.Start()
	for range 2 {
		// A client that says nothing.
		dialOnly(t, h.Addr)
	}
	refused(t, h.QT("connect", "echo in"), "the server is busy letting others in: try again")
	h.Log.Await(t, 0, regexp.MustCompile("too many unauthenticated clients"))
	h.Log.Await(t, 0, regexp.MustCompile("(?s)client refused.*no stream.*client refused.*no stream"))
	ok(t, h.QT("connect", "echo in"), "in\n")
}

func TestLimits(t *testing.T) {
	h := newHost(t)
	h.Settings["max_sessions_per_user"] = "1"
	h.Start()
	h.Shell(h.Addr, "-s", "one")
	refused(t, h.QT("connect", "true"), "has 1 sessions already, and max_sessions_per_user is 1")
	refused(t, h.Via(h.Addr, "connect", []string{"-s", "bad name"}, "true"), "cannot be a session's name")
	h.Settings["max_buffer_total"] = `"1B"`
	h.Settings["max_sessions_per_user"] = "5"
	h.Stop(syscall.SIGTERM)
	h.Start()
	refused(t, h.QT("connect", "true"), "max_buffer_total is 1B")
}

func TestNobodyAnswers(t *testing.T) {
	h := newHost(t)
	h.Start()
	h.Stop(syscall.SIGTERM)
	refused(t, h.QT("connect", "true"), fmt.Sprintf("127.0.0.1, UDP port %d: no answer.*is qtd running there", h.Addr.Port()))
}
