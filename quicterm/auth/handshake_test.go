package auth

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"errors"
	"net"
	"testing"

	"golang.org/x/crypto/ssh"
)

// hostKeysOfAllTypes returns a host key of each type.
func hostKeysOfAllTypes(t *testing.T) (keys []*HostKey) {
	t.Helper()
	var signers []crypto.Signer
	_, private, err := ed25519.GenerateKey(rand.Reader)
	signers = append(signers, private)
	for _, curve := range []elliptic.Curve{elliptic.P256(), elliptic.P384(), elliptic.P521()} {
		key, curveErr := ecdsa.GenerateKey(curve, rand.Reader)
		signers, err = append(signers, key), errors.Join(err, curveErr)
	}
	key, rsaErr := rsa.GenerateKey(rand.Reader, 2048)
	signers, err = append(signers, key), errors.Join(err, rsaErr)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range signers {
		k, err := NewHostKey(s)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, k)
	}
	return keys
}

// A host key whose private part is elsewhere does the handshakes that it would do itself.
func TestRemoteHostKey(t *testing.T) {
	for _, own := range hostKeysOfAllTypes(t) {
		plain, certified := own.Certificates()
		remote, err := RemoteHostKey(own.Public.Marshal(), plain, certified, own.SignHandshake)
		if err != nil {
			t.Fatal(err)
		}
		client, server := net.Pipe()
		defer client.Close()
		defer server.Close()
		go tls.Server(server, &tls.Config{GetCertificate: Certificate([]*HostKey{remote}, nil)}).HandshakeContext(context.Background())
		var seen ssh.PublicKey
		c := tls.Client(client, VerifyServer(func(k ssh.PublicKey) error { seen = k; return nil }))
		if err := c.HandshakeContext(t.Context()); err != nil || !equal(seen, own.Public) {
			t.Errorf("%s: %v", own.Public.Type(), err)
		}
	}
}

// A host key signs for no protocol but a server's handshake of TLS 1.3, and by no other scheme than
// that of its type.
func TestSignHandshakeOnly(t *testing.T) {
	transcript := make([]byte, 32)
	sound := append(bytes.Clone(handshakeContext), transcript...)
	client := bytes.Replace(sound, []byte("server"), []byte("client"), 1)
	for _, k := range hostKeysOfAllTypes(t) {
		hash := crypto.Hash(0)
		switch private := k.private.(type) {
		case *ecdsa.PrivateKey:
			hash = map[int]crypto.Hash{256: crypto.SHA256, 384: crypto.SHA384, 521: crypto.SHA512}[private.Params().BitSize]
		case *rsa.PrivateKey:
			hash = crypto.SHA256
		}
		if _, err := k.SignHandshake(sound, hash); err != nil {
			t.Errorf("%s: %v", k.Public.Type(), err)
		}
		for why, message := range map[string][]byte{
			"nothing": nil, "a hash": transcript, "a client's": client, "no hash": handshakeContext, "too short": sound[:len(sound)-1],
			"too long": append(bytes.Clone(sound), 0), "other bytes": append([]byte("SSHSIG"), sound...),
		} {
			if _, err := k.SignHandshake(message, hash); !errors.Is(err, errNoHandshake) {
				t.Errorf("%s signs %s: %v", k.Public.Type(), why, err)
			}
		}
		for _, other := range []crypto.Hash{0, crypto.MD5, crypto.SHA1, crypto.SHA256, crypto.SHA384, crypto.SHA512, 99} {
			_, isRSA := k.private.(*rsa.PrivateKey)
			usual := other == hash || isRSA && (other == crypto.SHA384 || other == crypto.SHA512)
			if _, err := k.SignHandshake(sound, other); (err == nil) != usual {
				t.Errorf("%s signs by hash %d: %v", k.Public.Type(), other, err)
			}
		}
	}
}
