package auth

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// An UnknownHostError is the error of a server whose key is in no known_hosts file. The
// user may accept it.
type UnknownHostError struct {
	Host string // as in known_hosts
	Key  ssh.PublicKey
}

func (e *UnknownHostError) Error() string {
	return fmt.Sprintf("the key of %s is not known: %s %s", e.Host, e.Key.Type(), ssh.FingerprintSHA256(e.Key))
}

// A ChangedHostError is the error of a server whose key differs from the known one: an
// attacker may be in between, or the server was installed again.
type ChangedHostError struct {
	Host  string
	Key   ssh.PublicKey
	Known []string // file and line of each key known for it
}

func (e *ChangedHostError) Error() string {
	return fmt.Sprintf("the key of %s has changed: it is %s %s, and known_hosts has another one", e.Host, e.Key.Type(), ssh.FingerprintSHA256(e.Key))
}

// A RevokedHostError is the error of a server whose key is marked as revoked.
type RevokedHostError struct {
	Host string
	Key  ssh.PublicKey
}

func (e *RevokedHostError) Error() string {
	return fmt.Sprintf("the key of %s is revoked: %s %s", e.Host, e.Key.Type(), ssh.FingerprintSHA256(e.Key))
}

// KnownHosts has the keys that known_hosts files list for one server.
type KnownHosts struct {
	host    string     // the server, as in known_hosts
	atPort  []knownKey // known for this port
	ofSSH   []knownKey // known for the host at the port of ssh
	revoked []ssh.PublicKey
}

type knownKey struct {
	where string // file and line
	key   ssh.PublicKey
}

// LoadKnownHosts reads known_hosts files (sshd(8)) for a server: host is the name by which
// the user calls it. It skips files that do not exist, lines that it cannot parse, as ssh
// does, and lines of certificate authorities, because servers here present no ssh
// certificate.
func LoadKnownHosts(host string, port uint16, files []string) (*KnownHosts, error) {
	host = strings.ToLower(host) // as ssh does
	sshHost := knownhosts.Normalize(net.JoinHostPort(host, "22"))
	k := &KnownHosts{host: knownhosts.Normalize(net.JoinHostPort(host, strconv.Itoa(int(port))))}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("known hosts: %w", err)
		}
		k.add(file, content, sshHost)
	}
	return k, nil
}

// add adds the keys that the content of a file lists for the server.
func (k *KnownHosts) add(file string, content []byte, sshHost string) {
	number := 0
	for line := range bytes.Lines(content) {
		number++
		marker, patterns, key, _, _, err := ssh.ParseKnownHosts(line)
		if err != nil {
			continue
		}
		known := knownKey{where: fmt.Sprintf("%s:%d", file, number), key: key}
		switch marker {
		case "revoked":
			// The key is refused whatever host the line names.
			k.revoked = append(k.revoked, key)
		case "":
			if matchHost(patterns, k.host) {
				k.atPort = append(k.atPort, known)
			}
			if matchHost(patterns, sshHost) {
				k.ofSSH = append(k.ofSSH, known)
			}
		}
	}
}

// matchHost matches a host against the patterns of a line, with ! before those that must
// not match, or against the hash that the line has instead.
func matchHost(patterns []string, host string) bool {
	matched := false
	for _, pattern := range patterns {
		if strings.HasPrefix(pattern, "|") {
			return len(patterns) == 1 && matchHash(pattern, host)
		}
		pattern, negated := strings.CutPrefix(strings.ToLower(pattern), "!")
		if !globMatch(pattern, host) {
			continue
		}
		if negated {
			return false
		}
		matched = true
	}
	return matched
}

// matchHash matches a host against |1|salt|HMAC-SHA1(salt, host), both in base64.
func matchHash(pattern, host string) bool {
	parts := strings.Split(pattern, "|")
	if len(parts) != 4 || parts[1] != "1" {
		return false
	}
	salt, saltErr := base64.StdEncoding.DecodeString(parts[2])
	want, hashErr := base64.StdEncoding.DecodeString(parts[3])
	if saltErr != nil || hashErr != nil {
		return false
	}
	mac := hmac.New(sha1.New, salt)
	mac.Write([]byte(host))
	return hmac.Equal(mac.Sum(nil), want)
}

// keyTypes are the types of host keys that clients can check, best first.
var keyTypes = []string{
	ssh.KeyAlgoED25519,
	ssh.KeyAlgoECDSA256,
	ssh.KeyAlgoECDSA384,
	ssh.KeyAlgoECDSA521,
	ssh.KeyAlgoRSA,
}

// KeyTypes returns the types of keys to ask the server for: first those of its known
// keys, then the others.
func (k *KnownHosts) KeyTypes() []string {
	var types []string
	for _, known := range slices.Concat(k.atPort, k.ofSSH) {
		if t := known.key.Type(); slices.Contains(keyTypes, t) && !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	for _, t := range keyTypes {
		if !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	return types
}

// Check returns nil if the key is known for the server. The keys known for its port decide.
// If there is none, a key that ssh knows for the host is accepted. Otherwise the error is an
// *UnknownHostError, *ChangedHostError or *RevokedHostError.
func (k *KnownHosts) Check(key ssh.PublicKey) error {
	blob := key.Marshal()
	same := func(known ssh.PublicKey) bool { return bytes.Equal(known.Marshal(), blob) }
	sameKnown := func(known knownKey) bool { return same(known.key) }
	if slices.ContainsFunc(k.revoked, same) {
		return &RevokedHostError{Host: k.host, Key: key}
	}
	if len(k.atPort) == 0 {
		if slices.ContainsFunc(k.ofSSH, sameKnown) {
			return nil
		}
		return &UnknownHostError{Host: k.host, Key: key}
	}
	if slices.ContainsFunc(k.atPort, sameKnown) {
		return nil
	}
	changed := &ChangedHostError{Host: k.host, Key: key}
	for _, known := range k.atPort {
		changed.Known = append(changed.Known, known.where)
	}
	return changed
}

// AddKnownHost appends a key that the user has accepted to a known_hosts file. It makes the
// file if it does not exist.
func AddKnownHost(file string, host string, key ssh.PublicKey) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	line := knownhosts.Line([]string{host}, key) + "\n"
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

// VerifyServer returns the TLS configuration of a client that accepts a server if check
// accepts its host key, also when a TLS session is resumed (RFC 8446, 4.6.1).
func VerifyServer(check func(ssh.PublicKey) error) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // there is no chain of certificates: VerifyConnection checks the key
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
