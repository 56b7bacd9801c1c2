package auth

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// serverNameSuffix ends the server names in which clients list the types of host keys that
// they can check. It is not the name of a host.
const serverNameSuffix = "quicterm.internal"

// ServerName returns the name for the TLS server name indication (RFC 6066) that asks for
// a host key of one of the given types, best first.
func ServerName(keyTypes []string) string {
	return strings.Join(append(append([]string(nil), keyTypes...), serverNameSuffix), ".")
}

// A HostKey is a private host key of a server, with TLS certificates over it.
type HostKey struct {
	Public    ssh.PublicKey
	ID        HostID
	private   crypto.Signer
	plain     *tls.Certificate
	certified *tls.Certificate // with the key's ssh certificate, or nil
}

// NewHostKey returns the host key with a private key: Ed25519, ECDSA or RSA.
func NewHostKey(private crypto.Signer) (*HostKey, error) {
	public, err := ssh.NewPublicKey(private.Public())
	if err != nil {
		return nil, err
	}
	plain, err := certify(private)
	if err != nil {
		return nil, err
	}
	return &HostKey{Public: public, ID: HostIDOf(public), private: private, plain: plain}, nil
}

func certify(private crypto.Signer, extensions ...pkix.Extension) (*tls.Certificate, error) {
	// Clients look at the key and the extension only. The times are those of a certificate
	// that does not expire (RFC 5280, 4.1.2.5).
	template := &x509.Certificate{
		SerialNumber:    big.NewInt(1),
		NotBefore:       time.Unix(0, 0),
		NotAfter:        time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		ExtraExtensions: extensions,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, fmt.Errorf("certificate over host key: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, nil
}

// LoadHostKey reads a private key file that is not encrypted.
func LoadHostKey(file string) (*HostKey, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	key, err := ssh.ParseRawPrivateKey(b)
	if err != nil {
		return nil, fmt.Errorf("host key %s: %w", file, err)
	}
	if k, ok := key.(*ed25519.PrivateKey); ok {
		key = *k
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("host key %s: keys of type %T cannot be used", file, key)
	}
	host, err := NewHostKey(signer)
	if err != nil {
		return nil, fmt.Errorf("host key %s: %w", file, err)
	}
	return host, nil
}

// LoadOrCreateHostKey reads a private key file. If the file does not exist, it makes one
// with an Ed25519 key, readable by its owner only.
func LoadOrCreateHostKey(file string) (*HostKey, error) {
	key, err := LoadHostKey(file)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	block, err := ssh.MarshalPrivateKey(private, "quicterm host key")
	if err != nil {
		return nil, err
	}
	if err := WriteSecret(file, pem.EncodeToMemory(block)); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make host key: %w", err)
	}
	return LoadHostKey(file) // another process may have been first
}

// WriteSecret makes a file that only its owner can read. It fails with fs.ErrExist if the
// file exists. Other processes see the whole content or no file.
func WriteSecret(file string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), file)
}

// ErrExpensive is the error of a handshake that would need a signature by an RSA key.
var ErrExpensive = errors.New("no CPU time for a signature by an RSA key")

// Certificate returns a function for [tls.Config.GetCertificate] that chooses the key of
// the first type that the client's server name lists and there is a key of, with an ssh
// certificate if the name asks for one, else the first key.
//
// A signature by an RSA key takes a hundred times the CPU time of others. If there is another key, allowRSA is asked
// before an RSA key is used; nil allows it. If it says no, the client gets another key that it lists. If it lists
// none, the handshake fails with ErrExpensive: the client would take any other key for that of a stranger.
func Certificate(
	keys []*HostKey, allowRSA func(*tls.ClientHelloInfo) bool,
) func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	onlyRSA := !slices.ContainsFunc(keys, func(k *HostKey) bool { return !isRSA(k.plain) })
	return func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		choices := listed(keys, hello.ServerName)
		if len(choices) == 0 {
			for _, k := range keys {
				choices = append(choices, k.plain)
			}
		}
		if len(choices) > 0 && isRSA(choices[0]) && !onlyRSA && allowRSA != nil && !allowRSA(hello) {
			choices = slices.DeleteFunc(choices, isRSA)
		}
		switch {
		case len(keys) == 0:
			return nil, errors.New("no host key")
		case len(choices) == 0:
			return nil, ErrExpensive
		}
		return choices[0], nil
	}
}

func isRSA(c *tls.Certificate) bool {
	_, ok := c.PrivateKey.(crypto.Signer).Public().(*rsa.PublicKey)
	return ok
}

// listed returns the certificates that a server name lists, in its order.
func listed(keys []*HostKey, serverName string) (choices []*tls.Certificate) {
	wanted, ours := strings.CutSuffix(serverName, "."+serverNameSuffix)
	if !ours {
		return nil
	}
	for label := range strings.SplitSeq(wanted, ".") {
		t, withCertificate := strings.CutSuffix(label, certified)
		for _, k := range keys {
			switch {
			case k.Public.Type() != t:
			case !withCertificate:
				choices = append(choices, k.plain)
			case k.certified != nil:
				choices = append(choices, k.certified)
			}
		}
	}
	return choices
}
