package auth

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
)

func pemFile(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func TestLoadHostKey(t *testing.T) {
	ec := newKey(ssh.KeyAlgoECDSA256)
	type test struct {
		name, content string
		want          crypto.Signer
	}
	tests := []test{
		{"Ed25519 in PKCS #8", pemFile("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(edKey(1)))), edKey(1)},
		{"ECDSA in SEC 1", pemFile("EC PRIVATE KEY", must(x509.MarshalECPrivateKey(ec.(*ecdsa.PrivateKey)))), ec},
		{"RSA in PKCS #1", pemFile("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey())), rsaKey()},
	}
	for _, keyType := range keyTypes {
		private := newKey(keyType)
		tests = append(tests, test{keyType, privateFile(private, ""), private})
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			key, err := LoadHostKey(write(t, "key", test.content))
			if err != nil {
				t.Fatal(err)
			}
			if got, want := text(key.Public), text(public(test.want)); got != want {
				t.Errorf("loaded the key %s, want %s", got, want)
			}
		})
	}
}

func TestBadHostKey(t *testing.T) {
	sound := privateFile(edKey(1), "")
	dsa := must(asn1.Marshal(struct {
		Version       int
		P, Q, G, Y, X *big.Int
	}{0, big.NewInt(23), big.NewInt(11), big.NewInt(4), big.NewInt(8), big.NewInt(7)}))
	for _, test := range []struct{ name, content, want string }{
		{"empty", "", "no key found"},
		{"public half", text(public(edKey(1))), "no key found"},
		{"cut", sound[:len(sound)/2], "no key found"},
		{"cut inside", pemFile("OPENSSH PRIVATE KEY", []byte("openssh-key-v1\x00\x00\x00")), "host key"},
		{"certificate", pemFile("CERTIFICATE", nil), "unsupported key type"},
		{"encrypted", privateFile(edKey(1), "secret"), "passphrase protected"},
		{"DSA", pemFile("DSA PRIVATE KEY", dsa), "cannot be used"},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := write(t, "key", test.content)
			_, err := LoadHostKey(file)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), file) {
				t.Errorf("got %v, want %q of %s", err, test.want, file)
			}
			if _, again := LoadOrCreateHostKey(file); again == nil || again.Error() != err.Error() {
				t.Errorf("where a key may be made: got %v, want the same refusal", again)
			}
			if b, _ := os.ReadFile(file); string(b) != test.content {
				t.Error("the file was changed")
			}
		})
	}
	if _, err := LoadHostKey(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: got %v, want %v", err, fs.ErrNotExist)
	}
	if _, err := LoadHostKey(t.TempDir()); err == nil {
		t.Error("a directory was loaded")
	}
}

// Of several processes at once, one makes the key and all load it.
func TestLoadOrCreateHostKey(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	file := filepath.Join(dir, "host_key")
	var keys [8]*HostKey
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			var err error
			if keys[i], err = LoadOrCreateHostKey(file); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	for i, k := range keys {
		if text(k.Public) != text(keys[0].Public) {
			t.Errorf("key %d is another than key 0", i)
		}
	}
	if got := keys[0].Public.Type(); got != ssh.KeyAlgoED25519 {
		t.Errorf("made a key of type %s, want Ed25519", got)
	}
	for name, want := range map[string]fs.FileMode{dir: fs.ModeDir | 0o700, file: 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode() != want {
			t.Errorf("%s: mode %v, %v; want %v", name, info.Mode(), err, want)
		}
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("left behind beside the key: %v", files)
	}
}

func TestWriteSecretOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := WriteSecret(file, []byte("first")); err != nil {
		t.Fatal(err)
	}
	if err := WriteSecret(file, []byte("second")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("the second time: got %v, want %v", err, fs.ErrExist)
	}
	if b, err := os.ReadFile(file); string(b) != "first" {
		t.Errorf("the file has %q, %v; want what was written first", b, err)
	}
}

func TestServerName(t *testing.T) {
	if got, want := ServerName([]string{"ssh-rsa", "ssh-ed25519"}), "ssh-rsa.ssh-ed25519.quicterm.internal"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if name := ServerName((&KnownHosts{authorities: make([]ssh.PublicKey, 1)}).KeyTypes()); len(name) > 253 {
		t.Errorf("all types make a name of %d bytes, and RFC 1035 allows 253", len(name))
	}
}

// The server presents the key that the server name of the client asks for.
func TestChoiceOfHostKey(t *testing.T) {
	var hostKeys []crypto.Signer
	for _, keyType := range []string{ssh.KeyAlgoRSA, ssh.KeyAlgoECDSA384, ssh.KeyAlgoED25519} {
		hostKeys = append(hostKeys, newKey(keyType))
	}
	for _, test := range []struct{ serverName, want string }{
		{ServerName(keyTypes), ssh.KeyAlgoED25519},
		{ServerName([]string{ssh.KeyAlgoECDSA384, ssh.KeyAlgoRSA}), ssh.KeyAlgoECDSA384},
		{ServerName([]string{ssh.KeyAlgoECDSA521, ssh.KeyAlgoRSA}), ssh.KeyAlgoRSA},
		{ServerName([]string{ssh.KeyAlgoECDSA521}), ssh.KeyAlgoRSA},
		{ServerName([]string{"no-such-type", ssh.KeyAlgoECDSA384}), ssh.KeyAlgoECDSA384},
		{ServerName(nil), ssh.KeyAlgoRSA},
		{"ssh-ed25519.example.org", ssh.KeyAlgoRSA},
		{"", ssh.KeyAlgoRSA},
	} {
		var got string
		conf := VerifyServer(func(key ssh.PublicKey) error { got = key.Type(); return nil })
		conf.ServerName = test.serverName
		if _, _, err := meet(t, conf, serve(hostKeys...)); err != nil || got != test.want {
			t.Errorf("asked for %q: got %s, %v; want %s", test.serverName, got, err, test.want)
		}
	}
	if _, _, err := meet(t, anyHost(), serve()); err == nil {
		t.Error("a server without a host key got through a handshake")
	}
}

// A client that asks for an RSA key when there is no CPU time for its signature gets another
// key that it lists, and none if it lists no other.
func TestRSAWithoutCPUTime(t *testing.T) {
	var hostKeys []*HostKey
	for _, keyType := range []string{ssh.KeyAlgoRSA, ssh.KeyAlgoECDSA384, ssh.KeyAlgoED25519} {
		hostKeys = append(hostKeys, must(NewHostKey(newKey(keyType))))
	}
	never := func(*tls.ClientHelloInfo) bool { return false }
	for _, test := range []struct {
		keys       []*HostKey
		serverName string
		want       string
	}{
		{hostKeys, ServerName([]string{ssh.KeyAlgoRSA, ssh.KeyAlgoED25519}), ssh.KeyAlgoED25519},
		{hostKeys, ServerName(nil), ssh.KeyAlgoECDSA384},
		{hostKeys, "", ssh.KeyAlgoECDSA384},
		{hostKeys, ServerName([]string{ssh.KeyAlgoRSA}), ""},
		{hostKeys[:1], ServerName([]string{ssh.KeyAlgoRSA}), ssh.KeyAlgoRSA},
	} {
		got := ""
		certificate, err := Certificate(test.keys, never)(&tls.ClientHelloInfo{ServerName: test.serverName})
		for _, k := range hostKeys {
			if certificate == k.plain {
				got = k.Public.Type()
			}
		}
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%d keys, asked for %q: %q, %v; want %q", len(test.keys), test.serverName, got, err, test.want)
		}
	}
}

// A whole handshake, with a host key of each type, checked against known_hosts.
func TestServerProvesItsHostKey(t *testing.T) {
	for _, keyType := range keyTypes {
		private := newKey(keyType)
		server := serve(private)
		dial := func(knownHosts string) error {
			known, err := LoadKnownHosts("h", 4433, []string{write(t, "known_hosts", knownHosts)})
			if err != nil {
				t.Fatal(err)
			}
			conf := VerifyServer(known.Check)
			conf.ServerName = ServerName(known.KeyTypes())
			_, _, err = meet(t, conf, server)
			return err
		}
		if err := dial("[h]:4433 " + text(public(private))); err != nil {
			t.Errorf("%s: the known key is refused: %v", keyType, err)
		}
		wantAs[*UnknownHostError](t, keyType+" of an unknown host", dial(""))
		wantAs[*ChangedHostError](t, keyType+" of a changed host", dial("[h]:4433 "+text(public(edKey(9)))))
		wantAs[*RevokedHostError](t, keyType+" that is revoked", dial("@revoked * "+text(public(private))))
	}
}

// An attacker can copy the certificate, but has no private key for it.
func TestBorrowedCertificate(t *testing.T) {
	host := must(NewHostKey(edKey(1)))
	host.plain.PrivateKey = edKey(2)
	if _, _, err := meet(t, anyHost(), &tls.Config{GetCertificate: Certificate([]*HostKey{host}, nil)}); err == nil {
		t.Error("a server without the private key was accepted")
	}
}

func TestOldTLS(t *testing.T) {
	server := serve(edKey(1))
	server.MinVersion, server.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	if _, _, err := meet(t, anyHost(), server); err == nil {
		t.Error("TLS 1.2 was accepted")
	}
}

// On a resumed connection, which presents no certificate, the host key is checked too.
func TestResumptionChecksHostKey(t *testing.T) {
	server := serve(edKey(1))
	server.SetSessionTicketKeys([][32]byte{{1}})
	var refusal error
	var seen []ssh.PublicKey
	conf := VerifyServer(func(key ssh.PublicKey) error { seen = append(seen, key); return refusal })
	conf.ServerName = ServerName(keyTypes)
	conf.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	for range 2 {
		if _, _, err := meet(t, conf, server); err != nil {
			t.Fatal(err)
		}
	}
	refusal = &RevokedHostError{Key: public(edKey(1))}
	state, _, err := meet(t, conf, server)
	wantAs[*RevokedHostError](t, "resumption after the key was revoked", err)
	if !state.DidResume || len(seen) != 3 {
		t.Fatalf("resumed: %v, keys checked: %d; want 3 of a resumed one", state.DidResume, len(seen))
	}
	for _, key := range seen {
		if !bytes.Equal(key.Marshal(), public(edKey(1)).Marshal()) {
			t.Errorf("checked %s, want the host key", text(key))
		}
	}
}
