package auth

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"
)

// An UnknownHostError is the refusal of a server whose key is in no known_hosts
// file. The person may accept it.
type UnknownHostError struct {
	Host string // as in known_hosts
	Key  ssh.PublicKey
}

func (e *UnknownHostError) Error() string {
	return fmt.Sprintf("the key of %s is not known: %s %s", e.Host, e.Key.Type(), ssh.FingerprintSHA256(e.Key))
}

// A ChangedHostError is the refusal of a server whose key is another than the
// known one: somebody may be in between, or the server was made anew.
type ChangedHostError struct {
	Host  string
	Key   ssh.PublicKey
	Known []string // file and line of each key known for it
}

func (e *ChangedHostError) Error() string {
	return fmt.Sprintf("the key of %s has changed: it is %s %s now, another is known", e.Host, e.Key.Type(), ssh.FingerprintSHA256(e.Key))
}

// A RevokedHostError is the refusal of a server whose key is marked as revoked.
type RevokedHostError struct {
	Host string
	Key  ssh.PublicKey
}

func (e *RevokedHostError) Error() string {
	return fmt.Sprintf("the key of %s is revoked: %s %s", e.Host, e.Key.Type(), ssh.FingerprintSHA256(e.Key))
}

// KnownHosts is what known_hosts files say of one server.
type KnownHosts struct {
	host     string // host:port of the server
	sshHost  string // host:port of its ssh server
	db       *knownhosts.HostKeyDB
	original map[string]string // real names of the files that db names
}

// LoadKnownHosts reads known_hosts files. Files that do not exist are skipped,
// and so are lines that make no sense, as ssh does. The server is host, under
// the name that the person calls it by, at the given port.
func LoadKnownHosts(host string, port uint16, files []string) (*KnownHosts, error) {
	k := &KnownHosts{
		host:     net.JoinHostPort(host, strconv.Itoa(int(port))),
		sshHost:  net.JoinHostPort(host, "22"),
		original: make(map[string]string),
	}
	dir := ""
	var readable []string
	for _, file := range files {
		content, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("known hosts: %w", err)
		}
		if sound := soundLines(content); !bytes.Equal(sound, content) {
			// The library refuses a file for one bad line: give it a copy
			// without.
			if dir == "" {
				if dir, err = os.MkdirTemp("", "quicterm-known-hosts-"); err != nil {
					return nil, err
				}
				defer os.RemoveAll(dir)
			}
			copied := filepath.Join(dir, strconv.Itoa(len(readable)))
			if err := os.WriteFile(copied, sound, 0o600); err != nil {
				return nil, err
			}
			k.original[copied] = file
			file = copied
		}
		readable = append(readable, file)
	}
	db, err := knownhosts.NewDB(readable...)
	if err != nil {
		return nil, fmt.Errorf("known hosts: %w", err)
	}
	k.db = db
	return k, nil
}

// soundLines returns the content with the lines emptied that cannot be parsed.
func soundLines(content []byte) []byte {
	lines := bytes.Split(content, []byte("\n"))
	for i, line := range lines {
		trimmed := bytes.TrimSpace(line)
		if len(trimmed) == 0 || trimmed[0] == '#' {
			continue
		}
		if _, _, _, _, _, err := ssh.ParseKnownHosts(line); err != nil {
			lines[i] = nil
		}
	}
	return bytes.Join(lines, []byte("\n"))
}

// keyTypes are the types of host keys that clients can check, best first.
var keyTypes = []string{
	ssh.KeyAlgoED25519,
	ssh.KeyAlgoECDSA256,
	ssh.KeyAlgoECDSA384,
	ssh.KeyAlgoECDSA521,
	ssh.KeyAlgoRSA,
}

// KeyTypes returns the types of keys to ask the server for: those that are
// known for it, then the others.
func (k *KnownHosts) KeyTypes() []string {
	var types []string
	for _, host := range []string{k.host, k.sshHost} {
		for _, key := range k.db.HostKeys(host) {
			if t := key.Type(); !key.Cert && slices.Contains(keyTypes, t) && !slices.Contains(types, t) {
				types = append(types, t)
			}
		}
	}
	for _, t := range keyTypes {
		if !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	return types
}

// Check says whether a key is that of the server: what is known for the very
// port decides; if there is nothing, a match with what ssh knows for the host
// accepts. Otherwise the error is one of this package's types.
func (k *KnownHosts) Check(key ssh.PublicKey) error {
	err := k.check(k.host, key)
	if unknown := new(UnknownHostError); errors.As(err, &unknown) {
		if sshErr := k.check(k.sshHost, key); sshErr == nil || errors.As(sshErr, new(*RevokedHostError)) {
			return sshErr
		}
	}
	return err
}

func (k *KnownHosts) check(host string, key ssh.PublicKey) error {
	// Only names are looked up: addresses change on the move.
	err := k.db.HostKeyCallback()(host, &net.TCPAddr{IP: net.IPv4zero}, key)
	name := knownhosts.Normalize(host)
	var revoked *xknownhosts.RevokedError
	var mismatch *xknownhosts.KeyError
	switch {
	case errors.As(err, &revoked):
		return &RevokedHostError{Host: name, Key: key}
	case errors.As(err, &mismatch) && len(mismatch.Want) == 0:
		return &UnknownHostError{Host: name, Key: key}
	case errors.As(err, &mismatch):
		changed := &ChangedHostError{Host: name, Key: key}
		for _, want := range mismatch.Want {
			file := want.Filename
			if original, ok := k.original[file]; ok {
				file = original
			}
			changed.Known = append(changed.Known, fmt.Sprintf("%s:%d", file, want.Line))
		}
		return changed
	}
	return err
}

// AddKnownHost appends a key that the person has accepted to a known_hosts
// file, which is made if it does not exist.
func AddKnownHost(file string, host string, key ssh.PublicKey) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	line := xknownhosts.Line([]string{host}, key) + "\n"
	if b, err := os.ReadFile(file); err == nil && len(b) > 0 && b[len(b)-1] != '\n' {
		line = "\n" + line
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line)
	return errors.Join(err, f.Close())
}

// VerifyServer returns the TLS configuration of a client that accepts the
// server if check accepts its host key. It does so on resumption as well
// (RFC 8446, 4.6.1).
func VerifyServer(check func(ssh.PublicKey) error) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // there is no chain to verify: VerifyConnection does all
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) == 0 {
				return errors.New("the server has no certificate")
			}
			key, err := ssh.NewPublicKey(state.PeerCertificates[0].PublicKey)
			if err != nil {
				return fmt.Errorf("the server's key: %w", err)
			}
			return check(key)
		},
	}
}
