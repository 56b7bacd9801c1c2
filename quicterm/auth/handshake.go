package auth

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"

	"golang.org/x/crypto/ssh"
)

// handshakeContext begins what the server of TLS 1.3 signs in a handshake (RFC 8446, 4.4.3). The hash
// of the handshake follows.
var handshakeContext = append(bytes.Repeat([]byte{' '}, 64), "TLS 1.3, server CertificateVerify\x00"...)

// errNoHandshake is the error of a signature over anything else.
var errNoHandshake = errors.New("a host key signs only handshakes of a TLS 1.3 server")

// SignHandshake signs what the server of TLS 1.3 signs in a handshake. It signs nothing else: who
// may ask for these signatures can neither sign as an ssh server with the key, nor as an authority.
// The hash is that of the signature scheme, 0 of Ed25519.
func (k *HostKey) SignHandshake(message []byte, hash crypto.Hash) ([]byte, error) {
	return SignHandshake(k.private, message, hash)
}

// SignHandshake is that of [HostKey.SignHandshake] for a key that is none of the host's.
func SignHandshake(private crypto.Signer, message []byte, hash crypto.Hash) ([]byte, error) {
	transcript, ok := bytes.CutPrefix(message, handshakeContext)
	if !ok || len(transcript) != sha256.Size && len(transcript) != sha512.Size384 {
		return nil, errNoHandshake
	}
	var options crypto.SignerOpts = hash
	switch public := private.Public().(type) {
	case ed25519.PublicKey:
		ok = hash == 0
	case *ecdsa.PublicKey:
		ok = hash == map[int]crypto.Hash{256: crypto.SHA256, 384: crypto.SHA384, 521: crypto.SHA512}[public.Params().BitSize]
	case *rsa.PublicKey:
		ok = hash == crypto.SHA256 || hash == crypto.SHA384 || hash == crypto.SHA512
		options = &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: hash}
	default:
		ok = false
	}
	if !ok || hash != 0 && !hash.Available() {
		return nil, fmt.Errorf("%w, and not by hash %d", errNoHandshake, hash)
	}
	return crypto.SignMessage(private, rand.Reader, message, options)
}

// Certificates returns the TLS certificates over the key, DER: the plain one, and that with the ssh
// certificate of the key, if it has one.
func (k *HostKey) Certificates() (plain, certified []byte) {
	if k.certified != nil {
		certified = k.certified.Certificate[0]
	}
	return k.plain.Certificate[0], certified
}

// RemoteHostKey returns a host key whose private part is elsewhere: sign has it sign as
// [HostKey.SignHandshake] does. The certificates are those of [HostKey.Certificates].
func RemoteHostKey(
	key, plain, certified []byte, sign func(message []byte, hash crypto.Hash) ([]byte, error),
) (*HostKey, error) {
	public, err := ssh.ParsePublicKey(key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(plain)
	if err != nil {
		return nil, err
	}
	signer := RemoteSigner(leaf.PublicKey, sign)
	k := &HostKey{
		Public: public, ID: HostIDOf(public), private: signer,
		plain: &tls.Certificate{Certificate: [][]byte{plain}, PrivateKey: signer},
	}
	if len(certified) > 0 {
		k.certified = &tls.Certificate{Certificate: [][]byte{certified}, PrivateKey: signer}
	}
	return k, nil
}

// RemoteSigner returns a key whose private part is elsewhere: sign has it sign as [SignHandshake] does.
func RemoteSigner(public crypto.PublicKey, sign func(message []byte, hash crypto.Hash) ([]byte, error)) crypto.Signer {
	return &remoteSigner{public, sign}
}

// A remoteSigner has another process sign whole messages. It implements [crypto.MessageSigner].
type remoteSigner struct {
	public crypto.PublicKey
	sign   func(message []byte, hash crypto.Hash) ([]byte, error)
}

func (s *remoteSigner) Public() crypto.PublicKey { return s.public }

// Sign implements [crypto.Signer]. A hash does not tell of what it is.
func (s *remoteSigner) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	return nil, errNoHandshake
}

func (s *remoteSigner) SignMessage(_ io.Reader, message []byte, opts crypto.SignerOpts) ([]byte, error) {
	return s.sign(message, opts.HashFunc())
}
