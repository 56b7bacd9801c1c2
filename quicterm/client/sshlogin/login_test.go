//go:build linux || darwin

package sshlogin

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"os/user"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/quicterm/auth"
)

// A person answers questions by their prompts, and keeps what was asked and told.
type person struct {
	answers map[string]string // by a part of the prompt
	asked   []string
	told    []string
}

var errNoAnswer = errors.New("the person does not answer")

func (p *person) Ask(prompt string, echo bool) (string, error) {
	p.asked = append(p.asked, fmt.Sprintf("%s%v", prompt, echo))
	for part, answer := range p.answers {
		if strings.Contains(prompt, part) {
			return answer, nil
		}
	}
	return "", errNoAnswer
}

func (p *person) Tell(line string) { p.told = append(p.told, line) }

// passphrase returns a function that answers questions for passphrases.
func (p *person) passphrase(prompt string) ([]byte, error) {
	answer, err := p.Ask(prompt, false)
	return []byte(answer), err
}

// newHost returns a host with an sshd, whose configuration has some lines more, and a login
// without keys to our account there.
func newHost(t *testing.T, config string) (*rig.Host, *Login) {
	t.Helper()
	h := rig.NewHost(t, "")
	addr, err := h.SSHD(config)
	if errors.Is(err, rig.ErrNoSSHD) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return h, login(t, h, addr)
}

// login returns a login without keys to our account at an address, at which the key of a
// host is known.
func login(t *testing.T, h *rig.Host, addr netip.AddrPort) *Login {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	h.Write("known_hosts", fmt.Sprintf("[127.0.0.1]:%d %s", addr.Port(), h.Read("host_key.pub")))
	l := &Login{Host: "host", Address: addr.String(), Network: "tcp", User: me.Username, Timeout: rig.Patience}
	know(t, l, h.Path("known_hosts"), addr)
	return l
}

// know makes a login accept the keys in a file.
func know(t *testing.T, l *Login, file string, addr netip.AddrPort) {
	t.Helper()
	known, err := auth.LoadKnownHosts("127.0.0.1", addr.Port(), []string{file})
	if err != nil {
		t.Fatal(err)
	}
	l.CheckHost, l.Algorithms.HostKeys = known.Check, known.Algorithms()
}

func identity(t *testing.T, file string, p *person) *auth.UserKey {
	t.Helper()
	key, err := auth.IdentityFile(file, p.passphrase)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// wantRun checks that a login runs commands.
func wantRun(t *testing.T, l *Login) {
	t.Helper()
	s, err := l.Run(t.Context(), "cat; echo ran")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := io.WriteString(s, "input\n"); err != nil {
		t.Fatal(err)
	}
	if err := s.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if out, err := io.ReadAll(s); err != nil || string(out) != "input\nran\n" {
		t.Errorf("the command printed %q, %v", out, err)
	}
}

// wantDenied checks that a login fails because the server wants something else.
func wantDenied(t *testing.T, l *Login) *DeniedError {
	t.Helper()
	s, err := l.Run(t.Context(), "true")
	if err == nil {
		s.Close()
	}
	var denied *DeniedError
	if !errors.As(err, &denied) {
		t.Fatalf("got %v, want permission denied", err)
	}
	return denied
}

func TestKeyFile(t *testing.T) {
	h, l := newHost(t, "")
	p := new(person)
	h.NewKey("other")
	l.Keys = []*auth.UserKey{identity(t, h.Path("other"), p), identity(t, h.Path("id"), p)}
	wantRun(t, l)
	l.Keys = l.Keys[:1]
	if denied := wantDenied(t, l); denied.Methods != "publickey" {
		t.Errorf("%v", denied)
	}
	l.Keys = nil
	wantDenied(t, l)
}

// A passphrase is asked for when the server has accepted the public key, and again if it is
// wrong. Without a person, the key is not used.
func TestPassphrase(t *testing.T) {
	h, l := newHost(t, "")
	raw, err := ssh.ParseRawPrivateKey([]byte(h.Read("id")))
	if err != nil {
		t.Fatal(err)
	}
	encrypt := func(name string, key any) {
		t.Helper()
		block, err := ssh.MarshalPrivateKeyWithPassphrase(key.(*ed25519.PrivateKey), "", []byte("sesame"))
		if err != nil {
			t.Fatal(err)
		}
		h.Write(name, string(pem.EncodeToMemory(block)))
	}
	_, other, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	encrypt("id", raw)
	encrypt("other", &other)
	p := &person{answers: map[string]string{"/id'": "sesame"}}
	l.Keys = []*auth.UserKey{identity(t, h.Path("other"), p), identity(t, h.Path("id"), p)}
	wantDenied(t, l)
	if len(p.asked) != 0 {
		t.Errorf("asked %q without a person", p.asked)
	}
	l.Asker = p
	wantRun(t, l)
	if len(p.asked) != 1 {
		t.Errorf("asked %q, want one question", p.asked)
	}
	p.answers = map[string]string{"/id'": "wrong"}
	p.asked = nil
	if denied := wantDenied(t, l); denied.Failed == nil || len(p.asked) != 3 {
		t.Errorf("after wrong passphrases: %v, asked %q", denied, p.asked)
	}
}

// startAgent serves an agent with a key, and returns its socket.
func startAgent(t *testing.T, h *rig.Host, keys ...agent.AddedKey) string {
	t.Helper()
	keyring := agent.NewKeyring()
	for _, k := range keys {
		if err := keyring.Add(k); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("unix", h.Path("agent"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go agent.ServeAgent(keyring, c)
		}
	}()
	return h.Path("agent")
}

// Keys of RSA sign with SHA-2, from files and from an agent.
func TestAgent(t *testing.T) {
	h, l := newHost(t, "")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-N", "", "-f", h.Path("rsa")).CombinedOutput(); err != nil {
		t.Skipf("ssh-keygen: %v: %s", err, out)
	}
	h.Write("authorized_keys", h.Read("rsa.pub"))
	l.Keys = []*auth.UserKey{identity(t, h.Path("rsa"), nil)}
	wantRun(t, l)
	raw, err := ssh.ParseRawPrivateKey([]byte(h.Read("rsa")))
	if err != nil {
		t.Fatal(err)
	}
	keys, closeAgent, err := auth.AgentKeys(startAgent(t, h, agent.AddedKey{PrivateKey: raw}))
	if err != nil {
		t.Fatal(err)
	}
	defer closeAgent()
	l.Keys = keys
	wantRun(t, l)
	l.Algorithms.UserKeys = []string{"ssh-ed25519", "ssh-rsa"}
	wantDenied(t, l)
}

// A certificate lets in whose key is in no authorized_keys: from a file beside the key, for a
// key that only the agent has, and from the agent.
func TestUserCertificate(t *testing.T) {
	h := rig.NewHost(t, "")
	h.NewKey("ca")
	addr, err := h.SSHD("TrustedUserCAKeys " + h.Path("ca.pub") + "\n")
	if errors.Is(err, rig.ErrNoSSHD) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	h.Write("authorized_keys", "")
	l := login(t, h, addr)
	out, err := exec.Command("ssh-keygen", "-q", "-s", h.Path("ca"), "-I", "id", "-n", l.User, h.Path("id.pub")).CombinedOutput()
	if err != nil {
		t.Fatalf("ssh-keygen: %v: %s", err, out)
	}
	file := []string{h.Path("id-cert.pub")}
	plain := identity(t, h.Path("id"), nil)
	certified := func(keys, agentKeys []*auth.UserKey, files []string, only bool) {
		t.Helper()
		certificates, skipped := auth.Certificates(keys, agentKeys, files, only)
		if len(skipped) > 0 {
			t.Error(skipped)
		}
		l.Keys = certificates
	}
	l.Keys = []*auth.UserKey{plain}
	wantDenied(t, l)
	certified(l.Keys, nil, file, false)
	wantRun(t, l)

	raw, err := ssh.ParseRawPrivateKey([]byte(h.Read("id")))
	if err != nil {
		t.Fatal(err)
	}
	public, _, _, _, err := ssh.ParseAuthorizedKey([]byte(h.Read("id-cert.pub")))
	if err != nil {
		t.Fatal(err)
	}
	socket := startAgent(t, h, agent.AddedKey{PrivateKey: raw}, agent.AddedKey{PrivateKey: raw, Certificate: public.(*ssh.Certificate)})
	agentKeys, closeAgent, err := auth.AgentKeys(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer closeAgent()
	certified(nil, agentKeys, nil, false)
	wantRun(t, l)
	certified(nil, agentKeys[:1], file, true)
	wantRun(t, l)
	certified(nil, agentKeys, nil, true)
	wantDenied(t, l)
	l.Algorithms.UserKeys = []string{"ssh-ed25519"}
	certified(nil, agentKeys, file, false)
	wantDenied(t, l)
	l.Algorithms.UserKeys = []string{"ssh-ed25519-cert-v01@openssh.com"}
	wantRun(t, l)
}

// A host key is accepted by a certificate, and refused before the user is named.
func TestHostKey(t *testing.T) {
	h, l := newHost(t, "")
	p := &person{answers: map[string]string{"": "secret"}}
	l.Asker, l.Keys = p, []*auth.UserKey{identity(t, h.Path("id"), p)}
	addr := netip.MustParseAddrPort(l.Address)
	for name, content := range map[string]string{"unknown": "", "changed": "[127.0.0.1]:" + fmt.Sprint(addr.Port()) + " " + h.Read("id.pub")} {
		h.Write("known_hosts", content)
		know(t, l, h.Path("known_hosts"), addr)
		_, err := l.Run(t.Context(), "true")
		var unknown *auth.UnknownHostError
		var changed *auth.ChangedHostError
		if !errors.As(err, &unknown) && !errors.As(err, &changed) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if log := h.Log.String(); strings.Contains(log, l.User) || len(p.asked) > 0 {
		t.Errorf("the server learned the user, who was asked %q:\n%s", p.asked, log)
	}
}

// Logins lead through chains of hosts, and each host's key is checked.
func TestJumps(t *testing.T) {
	h, l := newHost(t, "")
	p := new(person)
	key := identity(t, h.Path("id"), p)
	var first *Login
	for i := range 2 {
		addr, err := h.SSHD("")
		if err != nil {
			t.Fatal(err)
		}
		jump := login(t, h, addr)
		jump.Host, jump.Keys, jump.Jump = fmt.Sprint("jump", i), []*auth.UserKey{key}, first
		first = jump
	}
	l.Jump, l.Keys = first, []*auth.UserKey{key}
	wantRun(t, l)
	first.Jump.CheckHost = func(k ssh.PublicKey) error { return &auth.UnknownHostError{Host: "jump0", Key: k} }
	_, err := l.Run(t.Context(), "true")
	var unknown *auth.UnknownHostError
	if !errors.As(err, &unknown) || !strings.Contains(err.Error(), "ssh to jump0") {
		t.Errorf("an unknown jump host: %v", err)
	}
	*first.Jump = Login{Host: "none", Address: "127.0.0.1:1", Network: "tcp"}
	if _, err := l.Run(t.Context(), "true"); err == nil || !strings.Contains(err.Error(), "ssh to none: ") {
		t.Errorf("a jump host that does not answer: %v", err)
	}
	first.Jump, l.Address = nil, "127.0.0.1:1"
	if _, err := l.Run(t.Context(), "true"); err == nil || !strings.Contains(err.Error(), "ssh to host: ") {
		t.Errorf("a host that does not answer: %v", err)
	}
}

// Close ends reads and the command, and errors of the command arrive.
func TestClose(t *testing.T) {
	h, l := newHost(t, "")
	l.Keys = []*auth.UserKey{identity(t, h.Path("id"), nil)}
	errs, w := io.Pipe() // which tells when they arrive: sshd sends them after the output, or before it
	l.Errors = w
	s, err := l.Run(t.Context(), "echo wrong >&2; echo up; sleep 1000")
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 10)
	if n, err := io.ReadFull(s, b[:3]); err != nil || string(b[:n]) != "up\n" {
		t.Errorf("read %q, %v", b[:n], err)
	}
	if n, err := io.ReadFull(errs, b[:6]); err != nil || string(b[:n]) != "wrong\n" {
		t.Errorf("errors of the command: %q, %v", b[:n], err)
	}
	read := make(chan error)
	go func() {
		_, err := s.Read(b)
		read <- err
	}()
	s.Close()
	s.Close()
	if err := <-read; err == nil {
		t.Error("a read goes on after Close")
	}
	if _, err := s.Write(b); err == nil {
		t.Error("a write goes on after Close")
	}
	l.Errors = nil
	for command, want := range map[string]int{"exit 126": 126, "true": 0, "kill -9 $$": -1} {
		s, err := l.Run(t.Context(), command)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.(interface{ ExitStatus() int }).ExitStatus(); got != want {
			t.Errorf("%s ends with %d", command, got)
		}
		s.Close()
	}
}
