package auth

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// userKey returns a key that signs.
func userKey(s ssh.Signer) *UserKey {
	return &UserKey{Public: s.PublicKey(), signer: func() (ssh.Signer, error) { return s, nil }, silent: true}
}

func signer(private crypto.Signer) ssh.Signer { return must(ssh.NewSignerFromSigner(private)) }

// A securityKey signs as the hardware does (PROTOCOL.u2f).
type securityKey struct {
	private crypto.Signer
	flags   byte
}

const skApplication = "ssh:"

func (k securityKey) PublicKey() ssh.PublicKey {
	switch public := k.private.Public().(type) {
	case ed25519.PublicKey:
		return must(ssh.ParsePublicKey(ssh.Marshal(struct{ Type, Key, Application string }{
			ssh.KeyAlgoSKED25519, string(public), skApplication})))
	case *ecdsa.PublicKey:
		return must(ssh.ParsePublicKey(ssh.Marshal(struct{ Type, Curve, Point, Application string }{
			ssh.KeyAlgoSKECDSA256, "nistp256", string(must(public.Bytes())), skApplication})))
	}
	panic("no such security key")
}

func (k securityKey) Sign(rand io.Reader, data []byte) (*ssh.Signature, error) {
	application, message := sha256.Sum256([]byte(skApplication)), sha256.Sum256(data)
	rest := []byte{k.flags, 0, 0, 0, 1} // and a counter
	signature, err := signer(k.private).Sign(rand, slices.Concat(application[:], rest, message[:]))
	return &ssh.Signature{Format: k.PublicKey().Type(), Blob: signature.Blob, Rest: rest}, err
}

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

func never(string) ([]byte, error) { return nil, errors.New("nobody is to be asked") }

// Every kind of key, from everywhere that a person may have one, proves its
// holder on the connection.
func TestSignAndVerify(t *testing.T) {
	client, server := connect(t)
	check := func(name string, k *UserKey, silent bool) {
		t.Helper()
		signature, err := k.Sign(client, "me")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if err := VerifyUser(server, "me", k.Public, signature, false); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if k.Silent() != silent {
			t.Errorf("%s: Silent is %v, want %v", name, k.Silent(), silent)
		}
		if _, err := ParseUserKey(k.Public.Marshal()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	var added []agent.AddedKey
	for _, keyType := range keyTypes {
		private := newKey(keyType)
		added = append(added, agent.AddedKey{PrivateKey: private})
		k, err := IdentityFile(write(t, "id", privateFile(private, "")), never)
		if err != nil {
			t.Fatal(err)
		}
		check(keyType+" in a file", k, true)
	}
	asked := ""
	file := write(t, "id", privateFile(edKey(1), "open sesame"))
	k, err := IdentityFile(file, func(prompt string) ([]byte, error) { asked += prompt; return []byte("open sesame"), nil })
	if err != nil || asked != "" {
		t.Fatalf("encrypted: %v, asked %q before it is used", err, asked)
	}
	check("encrypted", k, false)
	if want := fmt.Sprintf("Enter passphrase for key '%s': ", file); asked != want {
		t.Errorf("encrypted: asked %q, want %q once", asked, want)
	}
	keys, closeAgent, err := AgentKeys(startAgent(t, added...))
	if err != nil {
		t.Fatal(err)
	}
	defer closeAgent()
	if len(keys) != len(added) {
		t.Errorf("%d keys from the agent, want %d", len(keys), len(added))
	}
	for _, k := range keys {
		check(k.Source, k, true)
	}
	for _, private := range []crypto.Signer{edKey(1), newKey(ssh.KeyAlgoECDSA256)} {
		k := userKey(securityKey{private, 1})
		check(k.Public.Type(), k, false)
	}
}

// refused wants that a signature proves nothing.
func refused(t *testing.T, why string, state tls.ConnectionState, user string, key ssh.PublicKey, signature []byte, verified bool) {
	t.Helper()
	if err := VerifyUser(state, user, key, signature, verified); err != ErrSignature {
		t.Errorf("%s: got %v, want %v", why, err, ErrSignature)
	}
}

func TestSignatureRefused(t *testing.T) {
	client, server := connect(t)
	_, elsewhere := connect(t)
	key := public(edKey(1))
	sound, err := userKey(signer(edKey(1))).Sign(client, "me")
	if err != nil {
		t.Fatal(err)
	}
	if err := VerifyUser(server, "me", key, sound, true); err != nil {
		t.Fatal(err)
	}
	refused(t, "another user", server, "you", key, sound, false)
	refused(t, "no user", server, "", key, sound, false)
	refused(t, "another key", server, "me", public(edKey(2)), sound, false)
	refused(t, "another connection", elsewhere, "me", key, sound, false)
	refused(t, "nothing", server, "me", key, nil, false)
	refused(t, "a byte more", server, "me", key, append(bytes.Clone(sound), 0), false)

	message, err := statement(client, "me")
	if err != nil {
		t.Fatal(err)
	}
	make := func(s ssh.Signer, hash sshsig.HashAlgorithm, namespace string) []byte {
		signature, err := sshsig.Sign(bytes.NewReader(message), s, hash, namespace)
		return must(signature, err).Marshal()
	}
	refused(t, "a signature of a file", server, "me", key, make(signer(edKey(1)), sshsig.HashSHA512, "file"), false)
	refused(t, "a namespace like ours", server, "me", key, make(signer(edKey(1)), sshsig.HashSHA512, namespace+"\x00"), false)
	plain := must(signer(edKey(1)).Sign(rand.Reader, message))
	refused(t, "a bare signature", server, "me", key, plain.Blob, false)
	refused(t, "an ssh signature", server, "me", key, ssh.Marshal(plain), false)
	other := must(sshsig.ParseSignature(make(signer(edKey(2)), sshsig.HashSHA512, namespace)))
	other.PublicKey = key
	refused(t, "another's signature under the key's name", server, "me", key, other.Marshal(), false)
	sha1 := must(ssh.NewSignerWithAlgorithms(signer(rsaKey()).(ssh.AlgorithmSigner), []string{ssh.KeyAlgoRSA}))
	weak := must(sshsig.ParseSignature(make(signer(rsaKey()), sshsig.HashSHA512, namespace)))
	weak.Signature = must(sha1.Sign(rand.Reader, message))
	refused(t, "RSA with SHA-1", server, "me", public(rsaKey()), weak.Marshal(), false)

	for _, test := range []struct {
		name            string
		flags           byte
		touched, proven bool
	}{{"untouched", 0, false, false}, {"touched", 1, true, false}, {"verified", 5, true, true}, {"verified, untouched", 4, false, false}} {
		for _, private := range []crypto.Signer{edKey(1), newKey(ssh.KeyAlgoECDSA256)} {
			k := securityKey{private, test.flags}
			signature := make(k, sshsig.HashSHA512, namespace)
			touched := VerifyUser(server, "me", k.PublicKey(), signature, false) == nil
			proven := VerifyUser(server, "me", k.PublicKey(), signature, true) == nil
			if touched != test.touched || proven != test.proven {
				t.Errorf("%s key %s: accepted %v, and %v where its person must be verified; want %v, %v",
					test.name, k.PublicKey().Type(), touched, proven, test.touched, test.proven)
			}
		}
	}
}

// Not a byte of a signature can be missing or another.
func TestSignatureCut(t *testing.T) {
	client, server := connect(t)
	signers := []ssh.Signer{securityKey{edKey(1), 5}}
	for _, keyType := range keyTypes {
		signers = append(signers, signer(newKey(keyType)))
	}
	for _, s := range signers {
		k := userKey(s)
		sound, err := k.Sign(client, "me")
		if err != nil {
			t.Fatal(err)
		}
		for i := range sound {
			refused(t, fmt.Sprintf("%s cut to %d of %d bytes", k.Public.Type(), i, len(sound)), server, "me", k.Public, sound[:i], false)
			flipped := bytes.Clone(sound)
			flipped[i] ^= 0x10
			refused(t, fmt.Sprintf("%s with byte %d of %d changed", k.Public.Type(), i, len(sound)), server, "me", k.Public, flipped, false)
		}
	}
}

func TestParseUserKey(t *testing.T) {
	cert := &ssh.Certificate{Key: public(edKey(1)), CertType: ssh.UserCert, ValidBefore: ssh.CertTimeInfinity}
	if err := cert.SignCert(rand.Reader, signer(edKey(2))); err != nil {
		t.Fatal(err)
	}
	small := new(big.Int).SetBit(big.NewInt(1), minRSA-2, 1)
	for _, test := range []struct {
		name string
		blob []byte
	}{
		{"nothing", nil},
		{"certificate", cert.Marshal()},
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
		{"nobody to ask", answer("", noTerminal), noTerminal.Error()},
	} {
		file := write(t, "id", locked)
		k, err := IdentityFile(file, test.ask)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = k.Sign(client, "me"); err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), file) {
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

// The old format hides which key it is: the public half must lie beside it.
func TestEncryptedPEM(t *testing.T) {
	client, server := connect(t)
	k, err := IdentityFile("testdata/encrypted_pem", func(string) ([]byte, error) { return []byte("open sesame"), nil })
	if err != nil {
		t.Fatal(err)
	}
	signature, err := k.Sign(client, "me")
	if err == nil {
		err = VerifyUser(server, "me", k.Public, signature, false)
	}
	if err != nil {
		t.Error(err)
	}
	content, err := os.ReadFile("testdata/encrypted_pem")
	if err != nil {
		t.Fatal(err)
	}
	file := write(t, "id", string(content))
	if _, err := IdentityFile(file, never); err == nil || !strings.Contains(err.Error(), file+".pub") {
		t.Errorf("without the public key: got %v, want that it is missed", err)
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
	if len(keys) != 1 || text(keys[0].Public) != text(public(edKey(3))) {
		t.Errorf("got %v, want the key that is no certificate", keys)
	}
	closeAgent()
	client, _ := connect(t)
	if _, err := keys[0].Sign(client, "me"); err == nil {
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

// Keys are offered in ssh's order.
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
		{name: "public half of nobody's", files: "4 1", want: "1"},
		{name: "missing", files: "none 1", want: "1"},
		{name: "missing all", files: "none 5"},
		{name: "broken beside a sound one", files: "broken 1", want: "1"},
		{name: "broken", files: "none broken", want: "error"},
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
			keys, err := UserKeys(agentKeys, files, test.only, never)
			var got []string
			for _, k := range keys {
				for n := range byte(10) {
					if bytes.Equal(k.Public.Marshal(), public(edKey(n)).Marshal()) {
						got = append(got, fmt.Sprint(n)+strings.TrimSuffix(k.Source[:1], "/"))
					}
				}
			}
			if err != nil {
				got = append(got, "error")
			}
			if s := strings.Join(got, " "); s != test.want {
				t.Errorf("got %q (%v), want %q", s, err, test.want)
			}
		})
	}
}

// Whatever a peer sends as a key and a signature, only a sound one holds.
func FuzzVerifyUser(f *testing.F) {
	client, server := connect(f)
	key := public(edKey(1))
	sound, err := userKey(signer(edKey(1))).Sign(client, "me")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(key.Marshal(), sound)
	f.Add(key.Marshal(), sound[:len(sound)-1])
	f.Fuzz(func(t *testing.T, blob, signature []byte) {
		for _, b := range [][]byte{blob, key.Marshal()} {
			k, err := ParseUserKey(b)
			if err != nil {
				continue
			}
			if VerifyUser(server, "me", k, signature, false) != nil {
				continue
			}
			sig, err := sshsig.ParseSignature(signature)
			if err != nil || sig.Namespace != namespace || !bytes.Equal(sig.PublicKey.Marshal(), k.Marshal()) {
				t.Errorf("accepted for %s: %+v, %v", text(k), sig, err)
			}
			if VerifyUser(server, "you", k, signature, false) == nil {
				t.Error("accepted for another user as well")
			}
		}
	})
}
