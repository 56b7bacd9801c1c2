//go:build linux || darwin

package sshd

import (
	"crypto/ed25519"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

func line(key ssh.PublicKey) string { return string(ssh.MarshalAuthorizedKey(key)) }

// A list of keys and the lists that ssh-keygen makes revoke the same keys.
func TestRevokedKeys(t *testing.T) {
	dir := t.TempDir()
	revoked, other, certified := ed25519Key(t), ed25519Key(t), ed25519Key(t)
	_, authority, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(authority)
	if err != nil {
		t.Fatal(err)
	}
	certificate := &ssh.Certificate{Key: certified, CertType: ssh.UserCert, ValidBefore: ssh.CertTimeInfinity}
	if err := certificate.SignCert(rand.Reader, signer); err != nil {
		t.Fatal(err)
	}
	write := func(name, content string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	files := []string{write("list", "# revoked\n\n  "+line(revoked)+line(certificate))}
	if _, err := exec.LookPath("ssh-keygen"); err == nil {
		for name, spec := range map[string]string{
			"key":    "key: " + line(revoked) + "key: " + line(certified),
			"sha1":   "sha1: " + line(revoked) + "sha1: " + line(certified),
			"sha256": "sha256: " + line(revoked) + "sha256: " + line(certified) + "serial: 7-9\nid: jo\n",
		} {
			krl := filepath.Join(dir, name+".krl")
			cmd := exec.Command("ssh-keygen", "-k", "-q", "-f", krl, "-s", write("ca.pub", line(signer.PublicKey())), write(name, spec))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			files = append(files, krl)
		}
	}
	var r revokedFile
	for _, file := range files {
		for i, key := range []ssh.PublicKey{revoked, certified, other} {
			if got, err := r.has(file, key); err != nil || got != (i < 2) {
				t.Errorf("%s, key %d: %v, %v", filepath.Base(file), i, got, err)
			}
		}
	}
	// sshd refuses all keys because of these.
	for name, content := range map[string]string{
		"cut.krl":     krlMagic + "\x00\x00\x00\x01",
		"newer.krl":   krlMagic + "\x00\x00\x00\x02" + strings.Repeat("\x00", 32),
		"section.krl": krlMagic + "\x00\x00\x00\x01" + strings.Repeat("\x00", 32) + "\x09\x00\x00\x00\x00",
		"words":       "this is no key\n",
		"type":        "ssh-rsa " + strings.Fields(line(revoked))[1],
		"word":        line(revoked) + "x\n",
	} {
		if _, err := r.has(write(name, content), other); err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
	if _, err := r.has(filepath.Join(dir, "none"), other); err == nil {
		t.Error("a missing file revokes nothing")
	}
	// A change is seen at once.
	file := write("changing", line(revoked))
	if got, err := r.has(file, other); err != nil || got {
		t.Fatalf("%v, %v", got, err)
	}
	write("changing", line(other))
	if err := os.Chtimes(file, time.Time{}, time.Unix(1, 0)); err != nil { // two changes may fall into one tick of the clock
		t.Fatal(err)
	}
	if got, err := r.has(file, other); err != nil || !got {
		t.Errorf("after a change: %v, %v", got, err)
	}
}

func FuzzParseRevoked(f *testing.F) {
	head := krlMagic + "\x00\x00\x00\x01" + strings.Repeat("\x00", 32)
	f.Add([]byte(head + "\x02\x00\x00\x00\x05\x00\x00\x00\x01k"))
	f.Add([]byte(head + "\x03\x00\x00\x00\x18\x00\x00\x00\x14aaaaaaaaaaaaaaaaaaaa"))
	f.Add([]byte(head + "\x04\x00\x00\x00\x01k\x00\x00\x00\x01s\xff\x00\x00\x00\x0a\x00\x00\x00\x01n\x00\x00\x00\x00\x00"))
	f.Add([]byte("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJHrYLNAUbHOiTlWgrCmDZ1FhM2JmvDDLvrH4lC2bGfn a\n#\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		keys, err := parseRevoked(content)
		if err == nil && len(keys) > len(content) {
			t.Errorf("%d keys of %d bytes", len(keys), len(content))
		}
	})
}
