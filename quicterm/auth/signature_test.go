package auth

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// userKey returns a key that signs.
func userKey(s ssh.Signer) *UserKey {
	return NewUserKey(s, "")
}

func signer(private crypto.Signer) ssh.Signer { return must(ssh.NewSignerFromSigner(private)) }

// A securityKey signs as a security key does (PROTOCOL.u2f).
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

// A signature by every type of key, from an agent or a file, is accepted.
func TestSignAndVerify(t *testing.T) {
	client, server := connect(t)
	check := func(name string, k *UserKey, silent bool) {
		t.Helper()
		signature, err := sign(k, client, "me")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if err := verifyUser(server, "me", k.Public, signature, false); err != nil {
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
		cert := &ssh.Certificate{Key: public(private), CertType: ssh.UserCert, ValidPrincipals: []string{"me"}}
		if err := cert.SignCert(rand.Reader, signer(edKey(9))); err != nil {
			t.Fatal(err)
		}
		added = append(added, agent.AddedKey{PrivateKey: private, Certificate: cert})
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

// refused checks that a signature is not accepted.
func refused(t *testing.T, why string, state tls.ConnectionState, user string, key ssh.PublicKey, signature []byte, verified bool) {
	t.Helper()
	if err := verifyUser(state, user, key, signature, verified); err != errSignature {
		t.Errorf("%s: got %v, want %v", why, err, errSignature)
	}
}

func TestSignatureRefused(t *testing.T) {
	client, server := connect(t)
	_, elsewhere := connect(t)
	key := public(edKey(1))
	sound, err := sign(userKey(signer(edKey(1))), client, "me")
	if err != nil {
		t.Fatal(err)
	}
	if err := verifyUser(server, "me", key, sound, true); err != nil {
		t.Fatal(err)
	}
	refused(t, "another user", server, "you", key, sound, false)
	refused(t, "no user", server, "", key, sound, false)
	refused(t, "another key", server, "me", public(edKey(2)), sound, false)
	refused(t, "another connection", elsewhere, "me", key, sound, false)
	refused(t, "nothing", server, "me", key, nil, false)
	refused(t, "a byte more", server, "me", key, append(bytes.Clone(sound), 0), false)

	statement, err := NewStatement(client, "me", signedAt)
	if err != nil {
		t.Fatal(err)
	}
	message := statement.Bytes()
	for why, other := range map[string]Statement{
		"another host key": {HostIDOf(public(edKey(2))), "me", signedAt, statement.Exporter},
		"another time":     {statement.Host, "me", ClientTime(time.Unix(1_900_000_001, 0)), statement.Exporter},
		"a server's time":  {statement.Host, "me", ServerTime(signedAt[1:]), statement.Exporter},
	} {
		if err := other.Verify(key, sound, false); err != errSignature {
			t.Errorf("%s: got %v, want %v", why, err, errSignature)
		}
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
			touched := verifyUser(server, "me", k.PublicKey(), signature, false) == nil
			proven := verifyUser(server, "me", k.PublicKey(), signature, true) == nil
			if touched != test.touched || proven != test.proven {
				t.Errorf("%s key %s: accepted %v, and %v where its person must be verified; want %v, %v",
					test.name, k.PublicKey().Type(), touched, proven, test.touched, test.proven)
			}
		}
	}
}

// The signed bytes (SPEC.md, 4.2): a change here is a change of the protocol. No two statements have the
// same.
func TestStatementBytes(t *testing.T) {
	statement := Statement{Host: HostID(bytes.Repeat([]byte{0xab}, 32)), Account: "ann", Exporter: bytes.Repeat([]byte{0xcd}, 32)}
	const host, exporter = "abababababababababababababababababababababababababababababababab",
		"cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd"
	for _, test := range []struct {
		time []byte
		want string
	}{
		{ClientTime(time.Unix(0x6553f164, 0)), "7632" + host + "00000003616e6e" + "00000009" + "00000000006553f164" + "00000020" + exporter},
		{ServerTime([]byte{1, 2, 3}), "7632" + host + "00000003616e6e" + "00000004" + "01010203" + "00000020" + exporter},
	} {
		statement.Time = test.time
		if got := hex.EncodeToString(statement.Bytes()); got != test.want {
			t.Errorf("got %s\nwant %s", got, test.want)
		}
	}
	shifted := statement
	shifted.Account, shifted.Time = "anna", statement.Time[1:]
	if bytes.Equal(shifted.Bytes(), statement.Bytes()) {
		t.Error("a byte of the time can be one of the account")
	}
	if want := sha256.Sum256(public(edKey(1)).Marshal()); HostIDOf(public(edKey(1))) != HostID(want) {
		t.Error("the host is not named by the SHA-256 of its key")
	}
	for _, bad := range [][]byte{nil, {byClient}, signedAt[:8], append(bytes.Clone(signedAt), 0), {2}} {
		if _, _, err := ParseTime(bad); err == nil {
			t.Errorf("%x is a time", bad)
		}
	}
}

// A signature with any byte missing or changed is refused.
func TestSignatureCut(t *testing.T) {
	client, server := connect(t)
	signers := []ssh.Signer{securityKey{edKey(1), 5}}
	for _, keyType := range keyTypes {
		signers = append(signers, signer(newKey(keyType)))
	}
	for _, s := range signers {
		k := userKey(s)
		sound, err := sign(k, client, "me")
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

// Of any bytes as a key and a signature, only a valid signature by that key is accepted.
func FuzzVerifyUser(f *testing.F) {
	client, server := connect(f)
	key := public(edKey(1))
	sound, err := sign(userKey(signer(edKey(1))), client, "me")
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
			if verifyUser(server, "me", k, signature, false) != nil {
				continue
			}
			sig, err := sshsig.ParseSignature(signature)
			if err != nil || sig.Namespace != namespace || !bytes.Equal(sig.PublicKey.Marshal(), k.Marshal()) {
				t.Errorf("accepted for %s: %+v, %v", text(k), sig, err)
			}
			if verifyUser(server, "you", k, signature, false) == nil {
				t.Error("accepted for another user as well")
			}
		}
	})
}

// signedAt is the time of signatures.
var signedAt = ClientTime(time.Unix(1_900_000_000, 0))

// sign returns the signature by which a client proves, on a connection, that the user holds a key.
func sign(k *UserKey, client tls.ConnectionState, user string) ([]byte, error) {
	statement, err := NewStatement(client, user, signedAt)
	if err != nil {
		return nil, err
	}
	return k.Sign(statement)
}

// verifyUser checks that signature at the other end.
func verifyUser(server tls.ConnectionState, user string, key ssh.PublicKey, signature []byte, verified bool) error {
	exporter, err := Exporter(server)
	if err != nil {
		return err
	}
	statement := &Statement{HostIDOf(public(edKey(1))), user, signedAt, exporter}
	return statement.Verify(key, signature, verified)
}
