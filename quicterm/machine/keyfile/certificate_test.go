//go:build linux || darwin

package keyfile

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/auth"
)

// certificate returns a certificate for a key by another one.
func certificate(t *testing.T, key, authority byte, principals ...string) []byte {
	t.Helper()
	public, err := ssh.NewPublicKey(ed25519.NewKeyFromSeed(append(make([]byte, 31), key)).Public())
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(append(make([]byte, 31), authority)))
	if err != nil {
		t.Fatal(err)
	}
	cert := &ssh.Certificate{Key: public, CertType: ssh.UserCert, ValidPrincipals: principals, ValidBefore: ssh.CertTimeInfinity}
	if err := cert.SignCert(rand.Reader, signer); err != nil {
		t.Fatal(err)
	}
	return cert.Marshal()
}

// Authorities let certificates in that name the account, or a principal of its file.
func TestAuthorities(t *testing.T) {
	r, a := newReader(t), current(t)
	_, authority := key(9)
	mine, other := certificate(t, 1, 9, a.Name), certificate(t, 1, 9, "ops")
	sources := &Sources{Authorities: &Authorities{Name: "ca", Keys: []byte(authority)}}
	if got := verdicts(r.Authorize(t.Context(), a, sources, ask(clientAddr, mine, other)...)); got != `no pty; the certificate is for ["ops"], not for ["me"]` {
		t.Errorf("by name: %s", got)
	}
	sources.Principals = put(t, a, "principals", 0o600, "command=\"x\" ops\n")
	if got := verdicts(r.Authorize(t.Context(), a, sources, ask(clientAddr, mine, other)...)); got != "the certificate names no principal of the account; <x>" {
		t.Errorf("by principals: %s", got)
	}
	put(t, a, "principals", 0o666)
	if got := verdicts(r.Authorize(t.Context(), a, sources, ask(clientAddr, other)...)); !strings.Contains(got, ErrUnread.Error()) {
		t.Errorf("principals that others may write: %s", got)
	}
	sources.Lax = true
	if got := verdicts(r.Authorize(t.Context(), a, sources, ask(clientAddr, other)...)); got != "<x>" {
		t.Errorf("the same without StrictModes: %s", got)
	}
}

// What a program of root's prints counts if it ends well. It runs with the rights of its account, and
// the child that parses its output with those of the account that logs in.
func TestProgram(t *testing.T) {
	r, a := newReader(t), another(t)
	blob, line := key(1)
	dir := programDir(t)
	runs := *a
	runs.UID++
	for i, test := range []struct {
		script string // the one that sleeps is given up
		mode   os.FileMode
		want   string
	}{
		{`echo "no-pty $2"`, 0o755, "no pty"},
		{`test "$(/usr/bin/id -u)" = 61002 && test "$HOME $USER $PWD" = "` + a.Home + ` another /" && echo "$2"`, 0o755, "allowed"},
		{`echo "$2"; exit 3`, 0o755, auth.ErrNotAuthorized.Error() + ": the program has failed: exit status 3"},
		{`echo "$2"; kill -9 $$`, 0o755, "error: the program did not end by itself: signal: killed"},
		{`exec /bin/sleep 300`, 0o755, "error: " + errSilent.Error()},
		{`echo "$2"`, 0o775, "others may write to it"},
		{`while echo "$2"; do :; done`, 0o755, "prints more than"},
		{`echo "# $2"`, 0o755, "key is not in authorized_keys"},
		{``, 0o644, "permission denied"},
	} {
		script := filepath.Join(dir, fmt.Sprint("program", i))
		syscall.ForkLock.RLock() // no other test forks while the script can be written
		err := os.WriteFile(script, []byte("#!/bin/sh\n"+test.script+"\n"), 0o755)
		syscall.ForkLock.RUnlock()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(script, test.mode); err != nil {
			t.Fatal(err)
		}
		r.timeout = readTimeout
		if strings.Contains(test.script, "sleep 300") {
			r.timeout = time.Second / 2
		}
		sources := &Sources{Program: &Program{Argv: []string{script, a.Name, strings.TrimSpace(line)}, Account: &runs}}
		if got := verdicts(r.Authorize(t.Context(), a, sources, ask(clientAddr, blob)...)); !strings.Contains(got, test.want) {
			t.Errorf("%s: %s, want %s", test.script, got, test.want)
		}
	}
	r.mu.Lock()
	hung := r.stateLocked(a.UID).hung
	r.mu.Unlock()
	if hung {
		t.Error("a slow program counts as files that cannot be read")
	}
	if err := CheckProgram("program"); err == nil {
		t.Error("a relative path is accepted")
	}
	if err := CheckProgram(put(t, a, "own", 0o755, "#!/bin/sh\n")); err == nil {
		t.Error("a program of an account is accepted")
	}
}

// programDir returns a directory of root's for programs, which every account can reach.
func programDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var", "quicterm-test")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}
