package auth

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
)

// edKey returns the Ed25519 key with a number, the same in every run: the corpus of fuzz
// tests has such keys.
func edKey(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(append(make([]byte, ed25519.SeedSize-1), n))
}

// rsaKey is generated once, because that is slow.
var rsaKey = sync.OnceValue(func() *rsa.PrivateKey {
	return must(rsa.GenerateKey(rand.Reader, minRSA))
})

var curves = map[string]elliptic.Curve{
	ssh.KeyAlgoECDSA256: elliptic.P256(),
	ssh.KeyAlgoECDSA384: elliptic.P384(),
	ssh.KeyAlgoECDSA521: elliptic.P521(),
}

// newKey returns a new key of a type, but always the same RSA key.
func newKey(keyType string) crypto.Signer {
	switch keyType {
	case ssh.KeyAlgoED25519:
		_, private, err := ed25519.GenerateKey(rand.Reader)
		return must(private, err)
	case ssh.KeyAlgoRSA:
		return rsaKey()
	}
	return must(ecdsa.GenerateKey(curves[keyType], rand.Reader))
}

// must is for calls that fail only if the test itself is wrong.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func public(private crypto.Signer) ssh.PublicKey { return must(ssh.NewPublicKey(private.Public())) }

// text returns the line of a key in an authorized_keys file, without its end.
func text(key ssh.PublicKey) string {
	b := ssh.MarshalAuthorizedKey(key)
	return string(b[:len(b)-1])
}

// privateFile returns the content of a private key file in the format of
// OpenSSH, encrypted if there is a passphrase.
func privateFile(private crypto.Signer, passphrase string) string {
	if passphrase == "" {
		return string(pem.EncodeToMemory(must(ssh.MarshalPrivateKey(private, ""))))
	}
	return string(pem.EncodeToMemory(must(ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte(passphrase)))))
}

// write makes a file in a new directory.
func write(t testing.TB, name, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// serve is the configuration of a server with the given host keys.
func serve(keys ...crypto.Signer) *tls.Config {
	var hostKeys []*HostKey
	for _, k := range keys {
		hostKeys = append(hostKeys, must(NewHostKey(k)))
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: Certificate(hostKeys, nil)}
}

// anyHost is the configuration of a client that accepts every server.
func anyHost() *tls.Config { return VerifyServer(func(ssh.PublicKey) error { return nil }) }

// A buffered end of a pipe does not wait until the other end reads, like a socket: an end
// can refuse the other one while that still writes.
type buffered struct {
	net.Conn
	out  chan []byte // more than a handshake ever writes
	done chan struct{}
}

func buffer(c net.Conn) *buffered {
	b := &buffered{Conn: c, out: make(chan []byte, 64), done: make(chan struct{})}
	go func() {
		defer close(b.done)
		for p := range b.out {
			c.Write(p)
		}
	}()
	return b
}

func (b *buffered) Write(p []byte) (int, error) {
	b.out <- bytes.Clone(p)
	return len(p), nil
}

// join ends the pipe, if it has not ended, and waits.
func (b *buffered) join() {
	b.Conn.Close()
	close(b.out)
	<-b.done
}

// meet connects a client and a server in memory. The error is the client's.
func meet(t testing.TB, client, server *tls.Config) (c, s tls.ConnectionState, err error) {
	t.Helper()
	near, far := net.Pipe()
	clientEnd, serverEnd := buffer(near), buffer(far)
	clientTLS, serverTLS := tls.Client(clientEnd, client), tls.Server(serverEnd, server)
	served := make(chan error, 1)
	go func() {
		_, err := serverTLS.Write([]byte("x")) // after the tickets of TLS
		served <- err
	}()
	_, err = clientTLS.Read(make([]byte, 1))
	if err != nil {
		near.Close() // the server need not wait for more
	}
	serveErr := <-served
	clientEnd.join()
	serverEnd.join()
	if err == nil && serveErr != nil {
		t.Fatalf("the client accepts the server, but the server fails: %v", serveErr)
	}
	return clientTLS.ConnectionState(), serverTLS.ConnectionState(), err
}

// connect returns both ends' states of a new connection.
func connect(t testing.TB) (client, server tls.ConnectionState) {
	t.Helper()
	client, server, err := meet(t, anyHost(), serve(edKey(1)))
	if err != nil {
		t.Fatal(err)
	}
	return client, server
}

// wantAs checks that an error is of a type.
func wantAs[E error](t *testing.T, why string, err error) {
	t.Helper()
	if !errors.As(err, new(E)) {
		t.Errorf("%s: got %v, want %T", why, err, *new(E))
	}
}
