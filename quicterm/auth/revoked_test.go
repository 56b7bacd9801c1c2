package auth

import (
	"crypto/ed25519"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// A list of keys and the lists that ssh-keygen makes revoke the same keys.
func TestRevokedKeys(t *testing.T) {
	revoked, certified, other := public(edKey(1)), public(edKey(2)), public(edKey(3))
	certificate := hostCertificate(t, certified, edKey(7), func(*ssh.Certificate) {})
	contents := map[string]string{"list": "# revoked\n\n  " + text(revoked) + "\n" + text(certificate)}
	for kind, spec := range map[string]string{
		"key":    "key: " + text(revoked) + "\nkey: " + text(certified) + "\n",
		"sha1":   "sha1: " + text(revoked) + "\nsha1: " + text(certified) + "\n",
		"sha256": "sha256: " + text(revoked) + "\nsha256: " + text(certified) + "\nserial: 7-9\nid: jo\n",
	} {
		contents[kind] = revocationList(t, spec, public(edKey(7)))
	}
	for kind, content := range contents {
		keys, err := ParseRevokedKeys([]byte(content))
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		for i, key := range []ssh.PublicKey{revoked, certified, certificate, other} {
			if got := keys.Has(key); got != (i < 3) {
				t.Errorf("%s, key %d: %v", kind, i, got)
			}
		}
	}
}

// revocationList returns what ssh-keygen makes of a specification, for certificates by a CA.
func revocationList(t *testing.T, spec string, ca ssh.PublicKey) string {
	t.Helper()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip(err)
	}
	krl := write(t, "krl", "")
	cmd := exec.Command("ssh-keygen", "-k", "-q", "-f", krl, "-s", write(t, "ca.pub", text(ca)), write(t, "spec", spec))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b, err := os.ReadFile(krl)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Certificates are revoked by their numbers and names, as ssh-keygen -Q says.
func TestRevokedCertificates(t *testing.T) {
	ca, otherCA := edKey(7), edKey(8)
	spec := "serial: 3\nserial: 5\nserial: 1000-2000\nserial: 18446744073709551615\nid: lost\n"
	for n := 5000; n < 5200; n += 3 { // a bitmap is shorter than a list
		spec += fmt.Sprintf("serial: %d\n", n)
	}
	content := revocationList(t, spec, public(ca))
	krl := write(t, "krl", content)
	keys, err := ParseRevokedKeys([]byte(content))
	if err != nil {
		t.Fatal(err)
	}
	serials := []uint64{0, 1, 3, 4, 5, 6, 999, 1000, 1500, 2000, 2001, 4999, 5000, 5001, 5003, 5198, 5199, 1 << 62, math.MaxUint64}
	for _, serial := range serials {
		for _, id := range []string{"h", "lost"} {
			for i, signer := range []ed25519.PrivateKey{ca, otherCA} {
				cert := hostCertificate(t, public(edKey(1)), signer, func(c *ssh.Certificate) { c.Serial, c.KeyId = serial, id })
				want := exec.Command("ssh-keygen", "-Q", "-f", krl, write(t, "cert.pub", text(cert))).Run() != nil
				if got := keys.Has(cert); got != want {
					t.Errorf("serial %d, id %s, authority %d: %v, ssh-keygen says %v", serial, id, i, got, want)
				}
			}
		}
	}
	// The key of an authority revokes all its certificates.
	keys, err = ParseRevokedKeys([]byte(text(public(ca))))
	if err != nil || !keys.Has(hostCertificate(t, public(edKey(1)), ca, func(*ssh.Certificate) {})) {
		t.Errorf("a revoked authority: %v", err)
	}
}

// A file that is not understood as a whole is an error: it may revoke any key.
func TestRevokedMalformed(t *testing.T) {
	key := text(public(edKey(1)))
	head := krlMagic + "\x00\x00\x00\x01" + strings.Repeat("\x00", 32)
	certificates := func(part string) string {
		return head + "\x01\x00\x00\x00" + string(rune(8+len(part))) + strings.Repeat("\x00", 8) + part
	}
	for name, content := range map[string]string{
		"cut":                 krlMagic + "\x00\x00\x00\x01",
		"newer":               krlMagic + "\x00\x00\x00\x02" + strings.Repeat("\x00", 32),
		"section":             head + "\x09\x00\x00\x00\x00",
		"cut key":             head + "\x02\x00\x00\x00\x05\x00\x00\x00\x02k",
		"short hash":          head + "\x03\x00\x00\x00\x05\x00\x00\x00\x01a",
		"critical extension":  head + "\xff\x00\x00\x00\x06\x00\x00\x00\x01n\x01",
		"part":                certificates("\x09\x00\x00\x00\x00"),
		"cut serial":          certificates("\x20\x00\x00\x00\x07aaaaaaa"),
		"critical extension ": certificates("\x39\x00\x00\x00\x06\x00\x00\x00\x01n\x01"),
		"words":               "this is no key\n",
		"type":                "ssh-rsa " + strings.Fields(key)[1],
		"word":                key + "\nx\n",
	} {
		if _, err := ParseRevokedKeys([]byte(content)); err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
}

func FuzzParseRevoked(f *testing.F) {
	head := krlMagic + "\x00\x00\x00\x01" + strings.Repeat("\x00", 32)
	f.Add([]byte(head + "\x02\x00\x00\x00\x05\x00\x00\x00\x01k"))
	f.Add([]byte(head + "\x03\x00\x00\x00\x18\x00\x00\x00\x14aaaaaaaaaaaaaaaaaaaa"))
	f.Add([]byte(head + "\x04\x00\x00\x00\x01k\x00\x00\x00\x01s\xff\x00\x00\x00\x0a\x00\x00\x00\x01n\x00\x00\x00\x00\x00"))
	f.Add([]byte(head + "\x01\x00\x00\x00\x25" + strings.Repeat("\x00", 8) + "\x21\x00\x00\x00\x10aaaaaaaabbbbbbbb\x23\x00\x00\x00\x05\x00\x00\x00\x01n"))
	f.Add([]byte(head + "\x01\x00\x00\x00\x1e" + strings.Repeat("\x00", 8) + "\x22\x00\x00\x00\x11\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x05bbbbb"))
	f.Add([]byte("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJHrYLNAUbHOiTlWgrCmDZ1FhM2JmvDDLvrH4lC2bGfn a\n#\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		keys, err := ParseRevokedKeys(content)
		if err != nil {
			return
		}
		if len(keys.hashes) > len(content) {
			t.Errorf("%d keys of %d bytes", len(keys.hashes), len(content))
		}
		for _, serial := range []uint64{0, 1, math.MaxUint64} {
			keys.Has(&ssh.Certificate{Key: public(edKey(1)), SignatureKey: public(edKey(2)), Serial: serial})
		}
	})
}
