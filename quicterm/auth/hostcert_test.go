package auth

import (
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509/pkix"
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// hostCertificate returns an ssh certificate for a key, signed by a CA, after change.
func hostCertificate(t *testing.T, key ssh.PublicKey, ca crypto.Signer, change func(*ssh.Certificate)) *ssh.Certificate {
	t.Helper()
	now := uint64(time.Now().Unix())
	cert := &ssh.Certificate{
		Key: key, CertType: ssh.HostCert, KeyId: "h", ValidPrincipals: []string{"h"},
		ValidAfter: now - 100, ValidBefore: now + 100,
	}
	change(cert)
	if err := cert.SignCert(rand.Reader, must(ssh.NewSignerFromSigner(ca))); err != nil {
		t.Fatal(err)
	}
	return cert
}

// The verdict on a server h with the key {a} and a certificate by {ca}, in a handshake.
func TestHostCertificates(t *testing.T) {
	private, ca := edKey(1), edKey(7)
	valid := func(*ssh.Certificate) {}
	now := uint64(time.Now().Unix())
	const known = "@cert-authority h {ca}"
	for _, test := range []struct {
		name       string
		knownHosts string
		change     func(*ssh.Certificate)
		want       string
	}{
		{"valid", known, valid, "known"},
		{"at the port", "@cert-authority [h]:4433 {ca}", valid, "known"},
		{"of a domain", "@cert-authority *,!x {ca}", valid, "known"},
		{"beside another key", "[h]:4433 {b}\n" + known, valid, "known"},
		{"no authority", "", valid, "unknown [h]:4433"},
		{"authority as a key", "h {ca}", valid, "of ssh [h]:4433 0:1"},
		{"authority of others", "@cert-authority x {ca}", valid, "unknown [h]:4433"},
		{"another authority", "@cert-authority h {b}", valid, "unknown [h]:4433"},
		{"key of its own", "@cert-authority h {b}\nh {a}", valid, "known"},
		{"authority revoked", known + "\n@revoked * {ca}", valid, "revoked [h]:4433"},
		{"key revoked", known + "\n@revoked * {a}", valid, "revoked [h]:4433"},
		{"expired", known, func(c *ssh.Certificate) { c.ValidBefore = now - 1 }, "unknown [h]:4433"},
		{"expired, with a known key", known + "\nh {a}", func(c *ssh.Certificate) { c.ValidBefore = now - 1 }, "known"},
		{"expired, with another key", known + "\n[h]:4433 {b}", func(c *ssh.Certificate) { c.ValidBefore = now - 1 }, "changed [h]:4433 0:2"},
		{"not yet valid", known, func(c *ssh.Certificate) { c.ValidAfter = now + 50 }, "unknown [h]:4433"},
		{"for ever", known, func(c *ssh.Certificate) { c.ValidBefore = ssh.CertTimeInfinity }, "known"},
		{"of another host", known, func(c *ssh.Certificate) { c.ValidPrincipals = []string{"x", "[h]:4433"} }, "unknown [h]:4433"},
		{"of any host", known, func(c *ssh.Certificate) { c.ValidPrincipals = nil }, "known"},
		{"of a user", known, func(c *ssh.Certificate) { c.CertType = ssh.UserCert }, "unknown [h]:4433"},
		{"critical option", known, func(c *ssh.Certificate) { c.CriticalOptions = map[string]string{"source-address": "::/0"} }, "unknown [h]:4433"},
		{"extension", known, func(c *ssh.Certificate) { c.Extensions = map[string]string{"x": ""} }, "known"},
	} {
		t.Run(test.name, func(t *testing.T) {
			cert := hostCertificate(t, public(private), ca, test.change)
			content := strings.ReplaceAll(fill(test.knownHosts), "{ca}", text(public(ca)))
			file := write(t, "known_hosts", content)
			k, err := LoadKnownHosts("h", 4433, []string{file})
			if err != nil {
				t.Fatal(err)
			}
			if got := verdict(k.Check(cert), []string{file}); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	k, err := LoadKnownHosts("h", 4433, []string{write(t, "known_hosts", strings.ReplaceAll(known, "{ca}", text(public(ca))))})
	if err != nil {
		t.Fatal(err)
	}
	forged := hostCertificate(t, public(private), ca, valid)
	forged.ValidPrincipals = []string{"h", "x"}
	if err := k.Check(forged); err == nil {
		t.Error("a certificate that was changed after it was signed is valid")
	}
	sha1 := hostCertificate(t, public(private), ca, valid)
	sha1.Signature.Format = ssh.KeyAlgoRSA
	if err := k.Check(sha1); err == nil || !strings.Contains(err.Error(), "signed by ssh-rsa") {
		t.Errorf("a signature of SHA-1: %v", err)
	}
	// A session goes on when the certificate of its login has expired, or was renewed.
	k.loaded = time.Now().Add(-time.Hour)
	old := hostCertificate(t, public(private), ca, func(c *ssh.Certificate) { c.ValidAfter, c.ValidBefore = now-9999, now-1 })
	if err := errors.Join(k.Check(old), k.Check(hostCertificate(t, public(private), ca, valid))); err != nil {
		t.Errorf("later in a session: %v", err)
	}
}

// A client that knows an authority gets the certificate, others do not; and a server cannot
// present the certificate of another key.
func TestServerPresentsItsCertificate(t *testing.T) {
	plain, private, ca := newKey(ssh.KeyAlgoECDSA256), edKey(1), edKey(7)
	host := must(NewHostKey(private))
	cert := hostCertificate(t, host.Public, ca, func(*ssh.Certificate) {})
	file := write(t, "key-cert.pub", text(cert))
	if err := host.LoadCertificate(file); err != nil {
		t.Fatal(err)
	}
	server := &tls.Config{GetCertificate: Certificate([]*HostKey{must(NewHostKey(plain)), host}, nil)}
	for _, test := range []struct{ knownHosts, want string }{
		{"", ssh.KeyAlgoED25519},
		{"@cert-authority h {ca}", ssh.CertAlgoED25519v01},
		{"@cert-authority h {ca}\nh {ecdsa}", ssh.CertAlgoED25519v01},
		{"@cert-authority x {ca}\nh {ecdsa}", ssh.KeyAlgoECDSA256},
	} {
		content := strings.ReplaceAll(fill(test.knownHosts), "{ca}", text(public(ca)))
		known, err := LoadKnownHosts("h", 4433, []string{write(t, "known_hosts", content)})
		if err != nil {
			t.Fatal(err)
		}
		var got string
		conf := VerifyServer(func(key ssh.PublicKey) error { got = key.Type(); return nil })
		conf.ServerName = ServerName(known.KeyTypes())
		if _, _, err := meet(t, conf, server); err != nil || got != test.want {
			t.Errorf("known hosts %q: got %s, %v; want %s", test.knownHosts, got, err, test.want)
		}
	}
	for name, value := range map[string][]byte{
		"certificate of another key": hostCertificate(t, public(edKey(2)), ca, func(*ssh.Certificate) {}).Marshal(),
		"key":                        host.Public.Marshal(),
		"nothing":                    nil,
		"part of a certificate":      cert.Marshal()[:200],
	} {
		borrowed := must(certify(private, pkix.Extension{Id: certificateExtension, Value: value}))
		server := &tls.Config{Certificates: []tls.Certificate{*borrowed}}
		if _, _, err := meet(t, anyHost(), server); err == nil {
			t.Errorf("a server that presents a %s is accepted", name)
		}
	}
}

func TestBadHostCertificate(t *testing.T) {
	host := must(NewHostKey(edKey(1)))
	user := hostCertificate(t, host.Public, edKey(7), func(c *ssh.Certificate) { c.CertType = ssh.UserCert })
	other := hostCertificate(t, public(edKey(2)), edKey(7), func(*ssh.Certificate) {})
	for want, content := range map[string]string{
		"no key found":              "",
		"no certificate of a host":  text(host.Public),
		"no certificate of a host ": text(user),
		"of another key":            text(other),
	} {
		file := write(t, "key-cert.pub", content)
		err := host.LoadCertificate(file)
		if err == nil || !strings.Contains(err.Error(), strings.TrimSpace(want)) || !strings.Contains(err.Error(), file) {
			t.Errorf("%.40q: %v, want %q", content, err, want)
		}
	}
	if host.certified != nil {
		t.Error("it is presented")
	}
}
