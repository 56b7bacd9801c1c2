package auth

import (
	"crypto/rsa"
	"fmt"
	"slices"

	"golang.org/x/crypto/ssh"
)

// KeyRules say which keys may be used, beside those that are not secure.
type KeyRules struct {
	Algorithms []string // as ssh names them; nil for all
	MinRSA     int      // the size of the smallest RSA key, in bits
}

// Check returns why the rules refuse a key or certificate, or nil.
func (r KeyRules) Check(key ssh.PublicKey) error {
	if !r.allows(key.Type()) {
		return fmt.Errorf("keys of type %s are not allowed", key.Type())
	}
	if size := BitsRSA(key); size > 0 && size < r.MinRSA {
		return fmt.Errorf("an RSA key of %d bits is smaller than %d", size, r.MinRSA)
	}
	return nil
}

func (r KeyRules) allows(keyType string) bool {
	return r.Algorithms == nil ||
		slices.ContainsFunc(Algorithms(keyType), func(a string) bool { return slices.Contains(r.Algorithms, a) })
}

// Algorithms returns the signature algorithms of a type of keys or certificates, without SHA-1.
func Algorithms(keyType string) []string {
	switch keyType {
	case ssh.KeyAlgoRSA:
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	case ssh.CertAlgoRSAv01:
		return []string{ssh.CertAlgoRSASHA512v01, ssh.CertAlgoRSASHA256v01}
	}
	return []string{keyType}
}

// BitsRSA returns the size of an RSA key or that of a certificate, or 0 for another one.
func BitsRSA(key ssh.PublicKey) int {
	if k, ok := PlainKey(key).(ssh.CryptoPublicKey); ok {
		if public, ok := k.CryptoPublicKey().(*rsa.PublicKey); ok {
			return public.N.BitLen()
		}
	}
	return 0
}

// HostRules say which host keys may be known.
type HostRules struct {
	KeyRules
	CAAlgorithms []string // by which authorities may sign certificates; nil for all
	RevokedKeys  string   // a file, or empty
}

// Restrict adds rules to the known hosts. It fails if the revoked keys cannot be read: then no host may be trusted.
func (k *KnownHosts) Restrict(rules HostRules) error {
	k.rules = rules
	if rules.RevokedKeys == "" {
		return nil
	}
	content, _, err := ReadFile(rules.RevokedKeys, MaxRevoked)
	if err == nil {
		k.revokedFile, err = ParseRevokedKeys(content)
	}
	if err != nil {
		return fmt.Errorf("revoked host keys %s: %w", rules.RevokedKeys, err)
	}
	return nil
}
