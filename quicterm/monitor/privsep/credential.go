//go:build linux || darwin

package privsep

import (
	"crypto/sha256"
	"encoding/base64"
	"log/slog"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// The proofs that are no key, as the log has them.
const ProofToken, ProofSSH = "token", "ssh"

// A Credential is what authenticated a client, for people: see "The log" in docs/operate.md.
type Credential struct {
	Proof string `cbor:"1,keyasint" json:"proof"` // fingerprint of a key, ProofToken or ProofSSH

	// Of a certificate: its key id and serial number, and the fingerprint of its authority.
	Certificate string `cbor:"2,keyasint" json:"certificate,omitempty"`
	Serial      uint64 `cbor:"3,keyasint" json:"serial,omitempty"`
	CA          string `cbor:"4,keyasint" json:"ca,omitempty"`

	// Reported is what a process of the account says of the login by ssh from which the client has its grant.
	Reported string `cbor:"5,keyasint" json:"reported,omitempty"`
}

// KeyCredential returns the credential of a client with a public key or a certificate, as it was sent.
func KeyCredential(blob []byte) Credential {
	c := Credential{Proof: Fingerprint(blob)}
	if cert := CertificateOf(blob); cert != nil {
		c.Certificate, c.Serial = wire.Printable(cert.KeyId, wire.MaxSummary), cert.Serial
		c.CA = ssh.FingerprintSHA256(cert.SignatureKey)
	}
	return c
}

// fingerprint returns the fingerprint of what a client has sent as a public key: of the key, if that
// is a certificate.
func Fingerprint(blob []byte) string {
	if key, err := auth.ParseUserKey(blob); err == nil {
		return ssh.FingerprintSHA256(auth.PlainKey(key))
	}
	sum := sha256.Sum256(blob)
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// CredentialOf returns the credential of a client that resumes, as its holder says.
func CredentialOf(by *wire.Resumed) Credential {
	switch {
	case len(by.Key) > 0:
		return KeyCredential(by.Key)
	case by.Proof == ProofSSH:
		return Credential{Proof: ProofSSH, Reported: by.Reported}
	}
	return Credential{Proof: ProofToken, Reported: by.Reported}
}

// On returns a log whose lines have the credential.
func (c Credential) On(log *slog.Logger) *slog.Logger {
	log = log.With("proof", c.Proof)
	if c.CA != "" {
		log = log.With("certificate", c.Certificate, "serial", c.Serial, "ca", c.CA)
	}
	if c.Reported != "" {
		log = log.With("reported", c.Reported)
	}
	return log
}

// CertificateOf returns a certificate that a client has offered, or nil if that is another key.
func CertificateOf(blob []byte) *ssh.Certificate {
	key, err := auth.ParseUserKey(blob)
	if err != nil {
		return nil
	}
	cert, _ := key.(*ssh.Certificate)
	return cert
}
