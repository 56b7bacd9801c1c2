package auth

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// startAgent serves an ssh agent with the given keys. It returns its socket.
func startAgent(t *testing.T, keys ...agent.AddedKey) string {
	t.Helper()
	keyring := agent.NewKeyring()
	for _, k := range keys {
		if err := keyring.Add(k); err != nil {
			t.Fatal(err)
		}
	}
	return listen(t, func(c net.Conn) { agent.ServeAgent(keyring, c) })
}

// listen serves a unix socket until the test ends.
func listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serve(c)
			c.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return socket
}

func never(string) ([]byte, error) { return nil, errors.New("the user must not be asked") }

func TestParseUserKey(t *testing.T) {
	cert := &ssh.Certificate{Key: public(edKey(1)), CertType: ssh.HostCert, ValidBefore: ssh.CertTimeInfinity}
	if err := cert.SignCert(rand.Reader, signer(edKey(2))); err != nil {
		t.Fatal(err)
	}
	small := new(big.Int).SetBit(big.NewInt(1), minRSA-2, 1)
	for _, test := range []struct {
		name string
		blob []byte
	}{
		{"nothing", nil},
		{"certificate of a host", cert.Marshal()},
		{"small RSA key", must(ssh.NewPublicKey(&rsa.PublicKey{N: small, E: 65537})).Marshal()},
		{"DSA key", ssh.Marshal(struct {
			Type       string
			P, Q, G, Y *big.Int
		}{"ssh-dss", big.NewInt(23), big.NewInt(11), big.NewInt(4), big.NewInt(8)})},
		{"unknown type", ssh.Marshal(struct{ Type, Key string }{"ssh-new", "key"})},
		{"point that is not on the curve", ssh.Marshal(struct{ Type, Curve, Point string }{ssh.KeyAlgoECDSA256, "nistp256", "\x04" + strings.Repeat("1", 64)})},
		{"a byte more", append(public(edKey(1)).Marshal(), 0)},
	} {
		if _, err := ParseUserKey(test.blob); err == nil {
			t.Errorf("%s: accepted", test.name)
		}
	}
	for _, keyType := range keyTypes {
		blob := public(newKey(keyType)).Marshal()
		if k, err := ParseUserKey(blob); err != nil || !bytes.Equal(k.Marshal(), blob) {
			t.Errorf("%s: got %v, %v; want the key", keyType, k, err)
		}
		for i := range blob {
			if _, err := ParseUserKey(blob[:i]); err == nil {
				t.Errorf("%s: accepted %d of %d bytes", keyType, i, len(blob))
			}
		}
	}
}

func TestIdentityFile(t *testing.T) {
	client, _ := connect(t)
	locked := privateFile(edKey(1), "open sesame")
	answer := func(s string, err error) func(string) ([]byte, error) {
		return func(string) ([]byte, error) { return []byte(s), err }
	}
	noTerminal := errors.New("no terminal")
	for _, test := range []struct {
		name string
		ask  func(string) ([]byte, error)
		want string
	}{
		{"wrong passphrase", answer("open", nil), "decryption password incorrect"},
		{"no passphrase", answer("", nil), "empty password"},
		{"no terminal to ask on", answer("", noTerminal), noTerminal.Error()},
	} {
		file := write(t, "id", locked)
		k, err := IdentityFile(file, test.ask)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = sign(k, client, "me"); err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: got %v, want %q of the file", test.name, err, test.want)
		}
	}
	for name, content := range map[string]string{
		"empty": "", "public half": text(public(edKey(1))), "cut": locked[:len(locked)/2],
	} {
		file := write(t, "id", content)
		if _, err := IdentityFile(file, never); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: got %v, want an error that names the file", name, err)
		}
	}
	if _, err := IdentityFile(filepath.Join(t.TempDir(), "id"), never); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: got %v, want %v", err, fs.ErrNotExist)
	}
}

// The old format encrypts the public key too, so that must be in a file beside it.
func TestEncryptedPEM(t *testing.T) {
	client, server := connect(t)
	content, err := os.ReadFile("testdata/encrypted_pem")
	if err != nil {
		t.Fatal(err)
	}
	file := write(t, "id", string(content))
	if _, err := IdentityFile(file, never); err == nil || !strings.Contains(err.Error(), file+".pub") {
		t.Errorf("without the public key: got %v, want that it is missed", err)
	}
	if content, err = os.ReadFile("testdata/encrypted_pem.pub"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file+".pub", content, 0o644); err != nil {
		t.Fatal(err)
	}
	k, err := IdentityFile(file, func(string) ([]byte, error) { return []byte("open sesame"), nil })
	if err != nil {
		t.Fatal(err)
	}
	signature, err := sign(k, client, "me")
	if err == nil {
		err = verifyUser(server, "me", k.Public, signature, false)
	}
	if err != nil {
		t.Error(err)
	}
}

func TestAgentKeys(t *testing.T) {
	cert := &ssh.Certificate{Key: public(edKey(1)), CertType: ssh.UserCert, ValidBefore: ssh.CertTimeInfinity}
	if err := cert.SignCert(rand.Reader, signer(edKey(2))); err != nil {
		t.Fatal(err)
	}
	socket := startAgent(t, agent.AddedKey{PrivateKey: edKey(1), Certificate: cert}, agent.AddedKey{PrivateKey: edKey(3)})
	keys, closeAgent, err := AgentKeys(socket)
	if err != nil {
		t.Fatal(err)
	}
	if len(keys) != 2 {
		t.Errorf("got %v, want a certificate and a key", keys)
	}
	certificates, _ := Certificates(nil, keys, nil, false)
	if len(certificates) != 1 || text(certificates[0].Public) != text(cert) {
		t.Errorf("got the certificates %v", certificates)
	}
	if keys, _ = UserKeys(keys, nil, false, never); len(keys) != 1 || text(keys[0].Public) != text(public(edKey(3))) {
		t.Errorf("got %v, want only the key that is not a certificate", keys)
	}
	closeAgent()
	client, _ := connect(t)
	if _, err := sign(keys[0], client, "me"); err == nil {
		t.Error("signed by an agent that was closed")
	}
	if keys, closeAgent, err = AgentKeys(startAgent(t)); err != nil || len(keys) != 0 {
		t.Errorf("an empty agent: %v, %v; want no keys", keys, err)
	} else {
		closeAgent()
	}
	for name, socket := range map[string]string{
		"no agent":             filepath.Join(t.TempDir(), "none"),
		"one that hangs up":    listen(t, func(net.Conn) {}),
		"one that says a lot":  listen(t, func(c net.Conn) { c.Write([]byte("\xff\xff\xff\xff\x0c")) }),
		"one that says little": listen(t, func(c net.Conn) { c.Write([]byte{0, 0, 0, 1, 12}) }),
	} {
		if _, _, err := AgentKeys(socket); err == nil || !strings.Contains(err.Error(), "ssh agent") {
			t.Errorf("%s: got %v, want an error of the agent", name, err)
		}
	}
}

// Certificates of files come first, with the key of the agent or of a file that they are for.
func TestCertificates(t *testing.T) {
	cert := func(n, ca byte, kind uint32) *ssh.Certificate {
		c := &ssh.Certificate{Key: public(edKey(n)), CertType: kind, ValidBefore: ssh.CertTimeInfinity}
		if err := c.SignCert(rand.Reader, signer(edKey(ca))); err != nil {
			t.Fatal(err)
		}
		return c
	}
	dir := t.TempDir()
	file := func(name string, key ssh.PublicKey) string {
		f := filepath.Join(dir, name)
		if err := os.WriteFile(f, []byte(text(key)), 0o600); err != nil {
			t.Fatal(err)
		}
		return f
	}
	first, second, third := cert(1, 7, ssh.UserCert), cert(2, 7, ssh.UserCert), cert(3, 7, ssh.UserCert)
	agentKeys := []*UserKey{{Public: public(edKey(1)), Source: "agent"}, {Public: second, Source: "agent"}, {Public: third, Source: "agent"}}
	keys := []*UserKey{{Public: public(edKey(4)), Source: "file"}}
	fourth := cert(4, 7, ssh.UserCert)
	files := []string{file("4", fourth), file("2", second), filepath.Join(dir, "none"), file("1", first), file("again", first),
		file("5", cert(5, 7, ssh.UserCert)), file("host", cert(1, 7, ssh.HostCert)), file("key", public(edKey(1))), file("words", public(edKey(1)))}
	if err := os.WriteFile(files[8], []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, only := range []bool{false, true} {
		want := []ssh.PublicKey{fourth, second, first}
		if !only {
			want = append(want, third)
		}
		got, skipped := Certificates(keys, agentKeys, files, only)
		if len(skipped) != 3 || len(got) != len(want) {
			t.Fatalf("only %v: got %d certificates, want %d; skipped %v", only, len(got), len(want), skipped)
		}
		for i, k := range got {
			if !equal(k.Public, want[i]) {
				t.Errorf("only %v: certificate %d is %s", only, i, text(k.Public))
			}
		}
	}
}

// UserKeys returns the keys in the order of ssh.
func TestUserKeys(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"1": privateFile(edKey(1), ""), "2": privateFile(edKey(2), ""), "again": privateFile(edKey(1), ""),
		"locked": privateFile(edKey(3), "open sesame"), "4.pub": text(public(edKey(4))), "broken": "x", "5.pub": "x",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, n := range map[string]byte{"open6": 6, "open7": 7} {
		if err := errors.Join(
			os.WriteFile(filepath.Join(dir, name), []byte(privateFile(edKey(n), "")), 0o600),
			os.Chmod(filepath.Join(dir, name), 0o640),
		); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "open7.pub"), []byte(text(public(edKey(7)))), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name  string
		agent string // numbers of keys
		files string
		only  bool
		want  string // numbers of keys, and a for those of the agent
	}{
		{name: "nothing"},
		{name: "agent", agent: "9 8", want: "9a 8a"},
		{name: "files", files: "2 1", want: "2 1"},
		{name: "both first, then the agent's, then the files'", agent: "9 2", files: "1 2", want: "2a 9a 1"},
		{name: "both in the order of files", agent: "1 2", files: "2 1", want: "2a 1a"},
		{name: "only files", agent: "9 2", files: "1 2", only: true, want: "2a 1"},
		{name: "the same twice", files: "1 again", want: "1"},
		{name: "locked", files: "locked", want: "3"},
		{name: "locked, and in the agent", agent: "3", files: "locked", want: "3a"},
		{name: "public half of the agent's", agent: "9 4", files: "4", want: "4a 9a"},
		{name: "public half of the agent's only", agent: "9 4", files: "4", only: true, want: "4a"},
		{name: "public key without its private key", files: "4 1", want: "1"},
		{name: "public key itself", agent: "9 7", files: "open7.pub", only: true, want: "7a"},
		{name: "public key itself, not in the agent", files: "4.pub 1", want: "1"},
		{name: "missing", files: "none 1", want: "1"},
		{name: "missing all", files: "none 5"},
		{name: "broken beside a sound one", files: "broken 1", want: "1 error"},
		{name: "broken", files: "none broken", want: "error"},
		{name: "open to others", files: "open6 1", want: "1 error"},
		{name: "open to others, but in the agent", agent: "9 7", files: "open7", only: true, want: "7a error"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var agentKeys []*UserKey
			for n := range strings.FieldsSeq(test.agent) {
				k := userKey(signer(edKey(n[0] - '0')))
				k.Source = "agent"
				agentKeys = append(agentKeys, k)
			}
			var files []string
			for name := range strings.FieldsSeq(test.files) {
				files = append(files, filepath.Join(dir, name))
			}
			keys, skipped := UserKeys(agentKeys, files, test.only, never)
			var got []string
			for _, k := range keys {
				for n := range byte(10) {
					if bytes.Equal(k.Public.Marshal(), public(edKey(n)).Marshal()) {
						got = append(got, fmt.Sprint(n)+strings.TrimSuffix(k.Source[:1], "/"))
					}
				}
			}
			for range skipped {
				got = append(got, "error")
			}
			if s := strings.Join(got, " "); s != test.want {
				t.Errorf("got %q (%v), want %q", s, skipped, test.want)
			}
		})
	}
}
