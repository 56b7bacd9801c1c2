package auth

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// namespace separates our signatures from those that other programs make with the same keys (PROTOCOL.sshsig).
const namespace = "auth@quicterm"

// Sign returns the signature that proves that the user holds the key. It blocks while a passphrase
// or a touch is asked for.
func (k *UserKey) Sign(statement *Statement) ([]byte, error) {
	signer, err := k.Signer()
	if err != nil {
		return nil, err
	}
	if s, ok := signer.(ssh.AlgorithmSigner); ok && k.certified() {
		signer = plainSigner{s, PlainKey(k.Public)}
	}
	signature, err := sshsig.Sign(bytes.NewReader(statement.Bytes()), signer, sshsig.HashSHA512, namespace)
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

// Verify checks a signature by a key, or by that of a certificate. With verified set, a security key
// must have checked who the user is, not only that the user is there.
func (s *Statement) Verify(key ssh.PublicKey, signature []byte, verified bool) error {
	key = PlainKey(key)
	sig, err := sshsig.ParseSignature(signature)
	if err != nil {
		return errSignature
	}
	if err := sshsig.Verify(bytes.NewReader(s.Bytes()), sig, key, sig.HashAlgorithm, namespace); err != nil {
		return errSignature
	}
	if verified && strings.HasPrefix(key.Type(), "sk-") &&
		(len(sig.Signature.Rest) == 0 || sig.Signature.Rest[0]&flagUserVerified == 0) {
		return errSignature
	}
	return nil
}
