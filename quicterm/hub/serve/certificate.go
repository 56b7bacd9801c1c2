package serve

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
)

// validFor is how long a self-made certificate is valid: as clients check its key alone, longer than any hub.
const validFor = 20 * 365 * 24 * time.Hour

// protocols are those of HTTPS that the hub speaks.
var protocols = []string{"http/1.1"}

// SelfMade returns a certificate for a hub that is known by its key, which is in a file. It makes the key if there is none.
func SelfMade(file string, names []string) (*tls.Config, *x509.Certificate, error) {
	key, err := loadKey(file)
	if err != nil {
		return nil, nil, fmt.Errorf("the hub's key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "quicterm hub"},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(validFor),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: protocols,
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}},
	}, leaf, nil
}

func loadKey(file string) (*ecdsa.PrivateKey, error) {
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return makeKey(file)
	}
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, fmt.Errorf("%s has no key in PEM", file)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	own, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s has a key of another type than ECDSA", file)
	}
	return own, nil
}

// makeKey makes a key, and its file as a whole.
func makeKey(file string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	part := file + ".new"
	if err := os.WriteFile(part, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		return nil, err
	}
	return key, os.Rename(part, file)
}

// FromAuthority returns certificates for a domain that an authority gives by ACME (Let's Encrypt), whose terms that accepts.
// It keeps them in a directory. The authority connects to port 443 of the domain.
func FromAuthority(domain, dir string) *tls.Config {
	manager := &autocert.Manager{
		Prompt: autocert.AcceptTOS, HostPolicy: autocert.HostWhitelist(domain), Cache: autocert.DirCache(dir),
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, // authorities need not speak TLS 1.3
		NextProtos: append(protocols[:1:1], acme.ALPNProto), GetCertificate: manager.GetCertificate,
	}
}
