//go:build linux || darwin

package keyfile

import (
	"crypto/ed25519"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/machine/account"
)

// checkChild returns what is wrong with this process as a child.
var checkChild = func() error { return nil }

// The test's program is its own child, as the daemon's is.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == Command {
		if err := checkChild(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if err := Main(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

var clientAddr = netip.MustParseAddr("192.0.2.7")

// key returns a public key, and its line in an authorized_keys file.
func key(n byte) (blob []byte, line string) {
	private := ed25519.NewKeyFromSeed(append(make([]byte, 31), n))
	public, err := ssh.NewPublicKey(private.Public())
	if err != nil {
		panic(err)
	}
	return public.Marshal(), string(ssh.MarshalAuthorizedKey(public))
}

// newReader returns a Reader that the test closes, and that believes every account to be in
// the group nogroup only.
func newReader(t *testing.T) *Reader {
	t.Helper()
	dir := t.TempDir()
	syscall.ForkLock.RLock() // no child of another test can write the script
	err := os.WriteFile(filepath.Join(dir, "id"), []byte("#!/bin/sh\necho 65534\n"), 0o700)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	r := NewReader(&account.NameService{Dirs: []string{dir}})
	t.Cleanup(r.Close)
	return r
}

// verdicts returns what is allowed, in words.
func verdicts(vs []auth.Verdict, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	var words []string
	for _, v := range vs {
		switch {
		case v.Allowed == nil:
			words = append(words, v.Refused.Error())
		case v.Allowed.Command != "":
			words = append(words, "<"+v.Allowed.Command+">")
		case v.Allowed.NoPTY:
			words = append(words, "no pty")
		default:
			words = append(words, "allowed")
		}
	}
	return strings.Join(words, "; ")
}

// ask returns queries about keys.
func ask(from netip.Addr, keys ...[]byte) (queries []auth.Query) {
	for _, key := range keys {
		queries = append(queries, auth.Query{Key: key, From: from})
	}
	return queries
}
