package auth

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"
)

// MaxRevoked is the size of the largest file of revoked keys that is read, in bytes: half a million keys.
const MaxRevoked = 16 << 20

// RevokedKeys are the keys and certificates that a file revokes: RevokedKeys of sshd, or RevokedHostKeys of ssh.
type RevokedKeys struct {
	hashes       map[string]struct{} // of keys, by SHA-1 or SHA-256
	certificates []revokedCertificates
}

func (r *RevokedKeys) add(blob []byte) {
	sum := sha256.Sum256(blob)
	r.hashes[string(sum[:])] = struct{}{}
}

func (r *RevokedKeys) hasKey(key ssh.PublicKey) bool {
	blob := key.Marshal()
	long, short := sha256.Sum256(blob), sha1.Sum(blob)
	_, byLong := r.hashes[string(long[:])]
	_, byShort := r.hashes[string(short[:])]
	return byLong || byShort
}

// Has reports whether a key is revoked. A certificate is revoked as well if its key or its authority is.
func (r *RevokedKeys) Has(key ssh.PublicKey) bool {
	cert, ok := key.(*ssh.Certificate)
	if !ok {
		return r.hasKey(key)
	}
	for _, c := range r.certificates {
		if c.has(cert) {
			return true
		}
	}
	return r.hasKey(cert.Key) || r.hasKey(cert.SignatureKey)
}

// ParseRevokedKeys reads a file of revoked keys: a list of public keys, one a line, or what ssh-keygen -k makes.
func ParseRevokedKeys(content []byte) (*RevokedKeys, error) {
	keys := &RevokedKeys{hashes: make(map[string]struct{})}
	if rest, ok := bytes.CutPrefix(content, []byte(krlMagic)); ok {
		return keys, parseKRL(rest, keys)
	}
	for line := range bytes.Lines(content) {
		fields := bytes.Fields(line)
		if len(fields) == 0 || fields[0][0] == '#' {
			continue
		}
		if len(fields) < 2 {
			return nil, errors.New("a line is not a public key")
		}
		blob, err := base64.StdEncoding.DecodeString(string(fields[1]))
		if err != nil {
			return nil, fmt.Errorf("a line is not a public key: %w", err)
		}
		key, err := ssh.ParsePublicKey(blob)
		if err != nil || key.Type() != string(fields[0]) {
			return nil, errors.Join(errors.New("a line is not a public key"), err)
		}
		if certificate, ok := key.(*ssh.Certificate); ok {
			key = certificate.Key
		}
		keys.add(key.Marshal())
	}
	return keys, nil
}
