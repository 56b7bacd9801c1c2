package auth

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

const (
	// namespace separates our signatures from those that other programs make with the
	// same keys (PROTOCOL.sshsig).
	namespace = "auth@quicterm"

	// exporterLabel has the prefix of labels that are not registered (RFC 5705, 4).
	exporterLabel = "EXPERIMENTAL-quicterm-auth"

	// StatementSize is the size of what a user signs, in bytes.
	StatementSize = 32
)

// An Exporter derives keys that only the two ends of a connection know (RFC 5705), as a
// *tls.ConnectionState does.
type Exporter interface {
	ExportKeyingMaterial(label string, context []byte, length int) ([]byte, error)
}

// Statement returns the bytes that a user signs. They are bound to the connection and to
// the account.
func Statement(conn Exporter, user string) ([]byte, error) {
	return conn.ExportKeyingMaterial(exporterLabel, []byte(user), StatementSize)
}

// Sign returns the signature that proves, on a connection, that the user holds the key. It
// blocks while a passphrase or a touch is asked for.
func (k *UserKey) Sign(conn Exporter, user string) ([]byte, error) {
	message, err := Statement(conn, user)
	if err != nil {
		return nil, err
	}
	signer, err := k.Signer()
	if err != nil {
		return nil, err
	}
	if s, ok := signer.(ssh.AlgorithmSigner); ok && k.certified() {
		signer = plainSigner{s, PlainKey(k.Public)}
	}
	signature, err := sshsig.Sign(bytes.NewReader(message), signer, sshsig.HashSHA512, namespace)
	if err != nil {
		return nil, fmt.Errorf("sign with %s: %w", k.Source, err)
	}
	return signature.Marshal(), nil
}

// A plainSigner signs with the key of a certificate, which an agent takes for another type of key.
type plainSigner struct {
	ssh.AlgorithmSigner
	key ssh.PublicKey
}

func (s plainSigner) PublicKey() ssh.PublicKey { return s.key }

// errSignature is the error of every invalid signature.
var errSignature = errors.New("signature is not valid")

// flagUserVerified is a flag in the signature of a security key (PROTOCOL.u2f).
const flagUserVerified = 0x04

// VerifyStatement checks a signature over a [Statement] by a key, or by that of a certificate. With
// verified set, a security key must have checked who they are, not only that they are there.
func VerifyStatement(message []byte, key ssh.PublicKey, signature []byte, verified bool) error {
	key = PlainKey(key)
	sig, err := sshsig.ParseSignature(signature)
	if err != nil {
		return errSignature
	}
	if err := sshsig.Verify(bytes.NewReader(message), sig, key, sig.HashAlgorithm, namespace); err != nil {
		return errSignature
	}
	if verified && strings.HasPrefix(key.Type(), "sk-") &&
		(len(sig.Signature.Rest) == 0 || sig.Signature.Rest[0]&flagUserVerified == 0) {
		return errSignature
	}
	return nil
}
