package auth

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
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
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// KnownHosts has the keys that known_hosts files list for one server.
type KnownHosts struct {
	name        string     // of the host, as in its certificates
	host        string     // the server, as in known_hosts
	sshHost     string     // the same at the port of ssh
	loaded      time.Time  // when the files were read
	atPort      []KnownKey // known for this port
	ofSSH       []KnownKey // known for the host at the port of ssh
	authorities []ssh.PublicKey
	revoked     []ssh.PublicKey
	revokedFile *RevokedKeys // or nil
	rules       HostRules
}

// A KnownKey is a key in a known_hosts file.
type KnownKey struct {
	Where string // file and line
	Key   ssh.PublicKey
}

// LoadKnownHosts reads known_hosts files (sshd(8)) for a server: host is the name by which the user calls it. It
// skips files that do not exist, and lines that it cannot parse, as ssh does.
func LoadKnownHosts(host string, port uint16, files []string) (*KnownHosts, error) {
	host = strings.ToLower(host) // as ssh does
	k := &KnownHosts{
		name:    host,
		host:    knownhosts.Normalize(net.JoinHostPort(host, strconv.Itoa(int(port)))),
		sshHost: knownhosts.Normalize(net.JoinHostPort(host, "22")),
		loaded:  time.Now(),
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("known hosts: %w", err)
		}
		k.Add(file, content)
	}
	return k, nil
}

// Add adds the keys that lines as in a known_hosts file list for the server. Source says where
// they are from, for people.
func (k *KnownHosts) Add(source string, content []byte) {
	number := 0
	for line := range bytes.Lines(content) {
		number++
		marker, patterns, key, _, _, err := ssh.ParseKnownHosts(line)
		if err != nil {
			continue
		}
		known := KnownKey{Where: fmt.Sprintf("%s:%d", source, number), Key: key}
		switch marker {
		case "revoked":
			// The key is refused whatever host the line names.
			k.revoked = append(k.revoked, key)
		case "cert-authority":
			if matchHost(patterns, k.host) || matchHost(patterns, k.sshHost) {
				k.authorities = append(k.authorities, key)
			}
		case "":
			if matchHost(patterns, k.host) {
				k.atPort = append(k.atPort, known)
			}
			if matchHost(patterns, k.sshHost) {
				k.ofSSH = append(k.ofSSH, known)
			}
		}
	}
}

// Any reports whether the files have a key of the server, or of an authority for it.
func (k *KnownHosts) Any() bool { return len(k.atPort)+len(k.ofSSH)+len(k.authorities) > 0 }

// matchHost matches a host against the patterns of a line, or against the hash that the line has instead.
func matchHost(patterns []string, host string) bool {
	if len(patterns) == 1 && strings.HasPrefix(patterns[0], "|") {
		return matchHash(patterns[0], host)
	}
	return MatchList(strings.ToLower(strings.Join(patterns, ",")), host) > 0
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

// certificateType has the types of certificates of those keys.
var certificateType = map[string]string{
	ssh.KeyAlgoED25519:  ssh.CertAlgoED25519v01,
	ssh.KeyAlgoECDSA256: ssh.CertAlgoECDSA256v01,
	ssh.KeyAlgoECDSA384: ssh.CertAlgoECDSA384v01,
	ssh.KeyAlgoECDSA521: ssh.CertAlgoECDSA521v01,
	ssh.KeyAlgoRSA:      ssh.CertAlgoRSAv01,
}

// KeyTypes returns the types of keys to ask the server for, of those that the rules allow: first those with a
// certificate, if there is an authority for the server, then those of its known keys, then the others.
func (k *KnownHosts) KeyTypes() []string {
	var types []string
	if len(k.authorities) > 0 {
		for _, t := range keyTypes {
			if k.rules.allows(certificateType[t]) {
				types = append(types, t+certified)
			}
		}
	}
	add := func(t string) {
		if k.rules.allows(t) && !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	for _, known := range slices.Concat(k.atPort, k.ofSSH) {
		if t := known.Key.Type(); slices.Contains(keyTypes, t) {
			add(t)
		}
	}
	for _, t := range keyTypes {
		add(t)
	}
	return types
}

// Check returns nil if the key is known for the server, or is in a certificate by an
// authority for it. The keys known for its port decide. If there is none, a key that ssh
// knows for the host is accepted. Otherwise the error is an *UnknownHostError,
// *ChangedHostError, *RevokedHostError or *RefusedHostError.
func (k *KnownHosts) Check(key ssh.PublicKey) error {
	var invalid error
	if k.isRevoked(key) {
		return &RevokedHostError{Host: k.host, Key: PlainKey(key)}
	}
	if cert, ok := key.(*ssh.Certificate); ok {
		key = cert.Key
		if contains(k.authorities, cert.SignatureKey) {
			if invalid = k.checkCertificate(cert); invalid == nil {
				return nil
			}
		}
	}
	if err := k.rules.Check(key); err != nil {
		return &RefusedHostError{Host: k.host, Key: key, Err: errors.Join(invalid, err)}
	}
	known := k.atPort
	if len(known) == 0 {
		known = k.ofSSH
	}
	same := func(known KnownKey) bool { return equal(known.Key, key) }
	switch {
	case len(known) == 0:
		return &UnknownHostError{Host: k.host, Key: key, Certificate: invalid}
	case slices.ContainsFunc(known, same):
		return nil
	}
	return &ChangedHostError{Host: k.host, Key: key, Known: known, OfSSH: len(k.atPort) == 0}
}

// isRevoked reports whether a key, or the key or the authority of a certificate, is revoked.
func (k *KnownHosts) isRevoked(key ssh.PublicKey) bool {
	if k.revokedFile != nil && k.revokedFile.Has(key) {
		return true
	}
	if cert, ok := key.(*ssh.Certificate); ok {
		return contains(k.revoked, cert.Key) || contains(k.revoked, cert.SignatureKey)
	}
	return contains(k.revoked, key)
}

func contains(keys []ssh.PublicKey, key ssh.PublicKey) bool {
	return slices.ContainsFunc(keys, func(k ssh.PublicKey) bool { return equal(k, key) })
}

func equal(a, b ssh.PublicKey) bool { return bytes.Equal(a.Marshal(), b.Marshal()) }

// AddKnownHost appends a key that the user has accepted to a known_hosts file. It makes the
// file if it does not exist. With hashed set, the line does not show the name of the host.
func AddKnownHost(file string, host string, key ssh.PublicKey, hashed bool) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	if host = knownhosts.Normalize(host); hashed {
		host = knownhosts.HashHostname(host)
	}
	line := host + " " + string(ssh.MarshalAuthorizedKey(key))
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
