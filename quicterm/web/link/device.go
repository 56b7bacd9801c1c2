package link

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"errors"
	"fmt"
	"io"
	"math/big"

	"golang.org/x/crypto/ssh"
)

// scalarSize is the size in bytes of each half of a signature by P-256.
const scalarSize = 32

// NewDeviceKey returns the key of a browser, P-256, whose private part no program gets: sign signs the hash, SHA-256, of
// data as WebCrypto does, in the form of IEEE P1363. The public key is a point that is not compressed, as WebCrypto
// exports it raw.
func NewDeviceKey(public []byte, sign func(data []byte) ([]byte, error)) (ssh.Signer, error) {
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), public)
	if err != nil {
		return nil, fmt.Errorf("the key of this browser: %w", err)
	}
	d := &deviceKey{sign: sign}
	d.public, err = ssh.NewPublicKey(key)
	return d, err
}

// A deviceKey implements [ssh.Signer].
type deviceKey struct {
	public ssh.PublicKey
	sign   func(data []byte) ([]byte, error)
}

func (k *deviceKey) PublicKey() ssh.PublicKey { return k.public }

// Sign returns the signature in the form of RFC 5656, 3.1.2.
func (k *deviceKey) Sign(_ io.Reader, data []byte) (*ssh.Signature, error) {
	halves, err := k.sign(data)
	if err != nil {
		return nil, err
	}
	if len(halves) != 2*scalarSize {
		return nil, errors.New("the browser has signed by another kind of key")
	}
	r, s := new(big.Int).SetBytes(halves[:scalarSize]), new(big.Int).SetBytes(halves[scalarSize:])
	return &ssh.Signature{Format: k.public.Type(), Blob: ssh.Marshal(struct{ R, S *big.Int }{r, s})}, nil
}
