package auth

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

func TestKeyRules(t *testing.T) {
	ed, rsa := public(edKey(1)), public(rsaKey())
	cert := hostCertificate(t, ed, edKey(7), func(*ssh.Certificate) {})
	rsaCert := hostCertificate(t, rsa, edKey(7), func(*ssh.Certificate) {})
	for _, test := range []struct {
		rules   KeyRules
		allowed []ssh.PublicKey
	}{
		{KeyRules{}, []ssh.PublicKey{ed, rsa, cert, rsaCert}},
		{KeyRules{Algorithms: []string{}}, nil},
		{KeyRules{Algorithms: []string{"ssh-ed25519"}}, []ssh.PublicKey{ed}},
		{KeyRules{Algorithms: []string{"ssh-ed25519-cert-v01@openssh.com", "new"}}, []ssh.PublicKey{cert}},
		{KeyRules{Algorithms: []string{"rsa-sha2-512", "rsa-sha2-256-cert-v01@openssh.com"}}, []ssh.PublicKey{rsa, rsaCert}},
		{KeyRules{Algorithms: []string{"ssh-rsa", "ssh-rsa-cert-v01@openssh.com"}}, nil}, // SHA-1
		{KeyRules{MinRSA: BitsRSA(rsa)}, []ssh.PublicKey{ed, rsa, cert, rsaCert}},
		{KeyRules{MinRSA: BitsRSA(rsa) + 1}, []ssh.PublicKey{ed, cert}},
	} {
		for _, key := range []ssh.PublicKey{ed, rsa, cert, rsaCert} {
			if err := test.rules.Check(key); (err == nil) != contains(test.allowed, key) {
				t.Errorf("%+v, %s: %v", test.rules, key.Type(), err)
			}
		}
	}
}

// The verdict on a server h with the key {a}, and a certificate by {ca}, if rules apply beside
// known_hosts.
func TestRestrict(t *testing.T) {
	ca := edKey(7)
	cert := hostCertificate(t, public(edKey(1)), ca, func(c *ssh.Certificate) { c.Serial = 5 })
	list := func(key ssh.PublicKey) string { return write(t, "revoked", text(key)+"\n") }
	serial := write(t, "krl", revocationList(t, "serial: 5\n", public(ca)))
	const plain, certificate = "ssh-ed25519", "ssh-ed25519-cert-v01@openssh.com"
	algorithms := func(names ...string) HostRules { return HostRules{KeyRules: KeyRules{Algorithms: names}} }
	for _, test := range []struct {
		name, knownHosts string
		rules            HostRules
		want             string
	}{
		{"both", "@cert-authority h {ca}", algorithms(plain, certificate), "known"},
		{"certificate only", "@cert-authority h {ca}", algorithms(certificate), "known"},
		{"certificate only, known key", "h {a}", algorithms(certificate), "refused"},
		{"no certificate", "@cert-authority h {ca}", algorithms(plain), "unknown [h]:4433"},
		{"no certificate, known key", "@cert-authority h {ca}\nh {a}", algorithms(plain), "known"},
		{"another algorithm", "@cert-authority h {ca}\nh {a}", algorithms("rsa-sha2-512"), "refused"},
		{"authority's algorithm", "@cert-authority h {ca}", HostRules{CAAlgorithms: []string{plain}}, "known"},
		{"not authority's", "@cert-authority h {ca}", HostRules{CAAlgorithms: []string{"rsa-sha2-512"}}, "unknown [h]:4433"},
		{"key revoked", "@cert-authority h {ca}\nh {a}", HostRules{RevokedKeys: list(public(edKey(1)))}, "revoked [h]:4433"},
		{"authority revoked", "@cert-authority h {ca}\nh {a}", HostRules{RevokedKeys: list(public(ca))}, "revoked [h]:4433"},
		{"serial revoked", "@cert-authority h {ca}\nh {a}", HostRules{RevokedKeys: serial}, "revoked [h]:4433"},
		{"another revoked", "@cert-authority h {ca}", HostRules{RevokedKeys: list(public(edKey(2)))}, "known"},
	} {
		content := strings.ReplaceAll(fill(test.knownHosts), "{ca}", text(public(ca)))
		k, err := LoadKnownHosts("h", 4433, []string{write(t, "known_hosts", content)})
		if err == nil {
			err = k.Restrict(test.rules)
		}
		if err != nil {
			t.Fatal(err)
		}
		err = k.Check(cert)
		got := verdict(err, nil)
		var refused *RefusedHostError
		if errors.As(err, &refused) {
			got = "refused"
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
		for _, name := range k.KeyTypes() {
			keyType := name
			if t, ok := strings.CutSuffix(name, certified); ok {
				keyType = certificateType[t]
			}
			if !test.rules.allows(keyType) {
				t.Errorf("%s: asks for %s", test.name, name)
			}
		}
	}
	for _, file := range []string{filepath.Join(t.TempDir(), "none"), t.TempDir(), write(t, "words", "no key\n")} {
		k := new(KnownHosts)
		if err := k.Restrict(HostRules{RevokedKeys: file}); err == nil || !strings.Contains(fmt.Sprint(err), file) {
			t.Errorf("revoked keys in %s: %v", file, err)
		}
	}
}
