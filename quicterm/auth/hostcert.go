package auth

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"
)

// certified ends the types of host keys, in a server name, that the client wants with an ssh certificate.
const certified = "-cert"

// certificateExtension identifies the X.509 extension that has the server's ssh host
// certificate (PROTOCOL.certkeys). It is in the arc for experiments and not registered.
var certificateExtension = asn1.ObjectIdentifier{1, 3, 6, 1, 3, 4433, 1}

// caAlgorithms are the algorithms by which an authority may sign certificates: those of OpenSSH, without SHA-1.
var caAlgorithms = []string{
	ssh.KeyAlgoED25519,
	ssh.KeyAlgoECDSA256,
	ssh.KeyAlgoECDSA384,
	ssh.KeyAlgoECDSA521,
	ssh.KeyAlgoSKED25519,
	ssh.KeyAlgoSKECDSA256,
	ssh.KeyAlgoRSASHA512,
	ssh.KeyAlgoRSASHA256,
}

// LoadCertificate reads the ssh certificate of a host key, as ssh-keygen writes it. The key
// presents it to clients that ask for one.
func (k *HostKey) LoadCertificate(file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey(b)
	if err != nil {
		return fmt.Errorf("host certificate %s: %w", file, err)
	}
	cert, ok := key.(*ssh.Certificate)
	switch {
	case !ok || cert.CertType != ssh.HostCert:
		return fmt.Errorf("host certificate %s: it has no certificate of a host", file)
	case !equal(cert.Key, k.Public):
		return fmt.Errorf("host certificate %s: it is of another key", file)
	}
	k.certified, err = certify(k.private, pkix.Extension{Id: certificateExtension, Value: cert.Marshal()})
	return err
}

// presentedKey returns the host key that a server presents, in its ssh certificate if it has one.
func presentedKey(cert *x509.Certificate) (ssh.PublicKey, error) {
	key, err := ssh.NewPublicKey(cert.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("the server's key: %w", err)
	}
	i := slices.IndexFunc(cert.Extensions, func(e pkix.Extension) bool { return e.Id.Equal(certificateExtension) })
	if i < 0 {
		return key, nil
	}
	presented, err := ssh.ParsePublicKey(cert.Extensions[i].Value)
	if err != nil {
		return nil, fmt.Errorf("the server's certificate: %w", err)
	}
	if c, ok := presented.(*ssh.Certificate); !ok || !equal(c.Key, key) {
		return nil, errors.New("the server's certificate is of another key")
	}
	return presented, nil
}

// VerifyServer returns the TLS configuration of a client that accepts a server if check
// accepts its host key, also when a TLS session is resumed (RFC 8446, 4.6.1). The key is an
// *ssh.Certificate if the server presents one.
func VerifyServer(check func(ssh.PublicKey) error) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // there is no chain of certificates: VerifyConnection checks the key
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) == 0 {
				return errors.New("the server has no certificate")
			}
			key, err := presentedKey(state.PeerCertificates[0])
			if err != nil {
				return err
			}
			return check(key)
		},
	}
}

// checkCertificate checks a certificate by a known authority as ssh does (sshd(8)).
func (k *KnownHosts) checkCertificate(cert *ssh.Certificate) error {
	switch {
	case cert.CertType != ssh.HostCert:
		return errors.New("it is not of a host")
	case len(cert.CriticalOptions) > 0:
		return errors.New("it has critical options")
	case !slices.Contains(caAlgorithms, cert.Signature.Format):
		return fmt.Errorf("it is signed by %s", cert.Signature.Format)
	case k.rules.CAAlgorithms != nil && !slices.Contains(k.rules.CAAlgorithms, cert.Signature.Format):
		return fmt.Errorf("signatures of authorities by %s are not allowed", cert.Signature.Format)
	}
	if err := k.rules.Check(cert); err != nil {
		return err
	}
	// A session may outlive the certificate with which it began, or the server may have
	// renewed that: now or when the session began, it must have been valid.
	at := func(t time.Time) error {
		checker := ssh.CertChecker{Clock: func() time.Time { return t }}
		return checker.CheckCert(k.name, cert)
	}
	err := at(time.Now())
	if err != nil && at(k.loaded) == nil {
		return nil
	}
	return err
}
