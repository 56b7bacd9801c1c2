//go:build linux || darwin

package bootstrap

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// An sshLogin is what sshd tells the programs of a login in their environment. Its fields are empty if that is not
// known.
type sshLogin struct {
	client, server string // the two ends of the connection, as address:port
	reported       string // by what sshd has let the client in: methods, and the keys of those that have one
}

// maxUserAuth bounds how much of sshd's list of methods is read: some keys.
const maxUserAuth = 64 << 10

// currentLogin returns the login by ssh in which this process runs. sshd says by what it was only if its
// setting ExposeAuthInfo is on.
func currentLogin() (l sshLogin) {
	if f := strings.Fields(os.Getenv("SSH_CONNECTION")); len(f) == 4 {
		l.client, l.server = net.JoinHostPort(f[0], f[1]), net.JoinHostPort(f[2], f[3])
	}
	file, err := os.Open(os.Getenv("SSH_USER_AUTH"))
	if err != nil {
		return l
	}
	defer file.Close()
	if content, err := io.ReadAll(io.LimitReader(file, maxUserAuth)); err == nil {
		l.reported = describeMethods(string(content))
	}
	return l
}

// describeMethods describes the methods of authentication that sshd lists, one a line, as sshd does in its
// own log: with the fingerprint of a key, and the key id, serial number and authority of a certificate.
func describeMethods(list string) string {
	var all []string
	for line := range strings.Lines(list) {
		method, key, _ := strings.Cut(strings.TrimSpace(line), " ")
		if method == "" {
			continue
		}
		if public, _, _, _, err := ssh.ParseAuthorizedKey([]byte(key)); err == nil {
			if cert, ok := public.(*ssh.Certificate); ok {
				method += fmt.Sprintf(" %s ID %s (serial %d) CA %s", ssh.FingerprintSHA256(cert.Key), cert.KeyId, cert.Serial,
					ssh.FingerprintSHA256(cert.SignatureKey))
			} else {
				method += " " + ssh.FingerprintSHA256(public)
			}
		}
		all = append(all, method)
	}
	return wire.Printable(strings.Join(all, ", "), wire.MaxSummary)
}
