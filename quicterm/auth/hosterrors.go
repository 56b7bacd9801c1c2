package auth

import (
	"fmt"

	"golang.org/x/crypto/ssh"
)

// An UnknownHostError is the error of a server whose key is in no known_hosts file. The user may accept it.
type UnknownHostError struct {
	Host string // as in known_hosts
	Key  ssh.PublicKey
	// Certificate says why the server's certificate by a known authority is not valid, or is nil.
	Certificate error
}

func (e *UnknownHostError) Error() string {
	text := fmt.Sprintf("the key of %s is not known: %s %s", e.Host, e.Key.Type(), ssh.FingerprintSHA256(e.Key))
	if e.Certificate != nil {
		text += ", with an invalid certificate: " + e.Certificate.Error()
	}
	return text
}

// A ChangedHostError is the error of a server whose key differs from the known one: an
// attacker may be in between, or the server was installed again.
type ChangedHostError struct {
	Host  string
	Key   ssh.PublicKey
	Known []KnownKey
	// OfSSH means that no key is known for the port: those in Known are of ssh at the host.
	// The daemon may have a key of its own, which only the user can tell.
	OfSSH bool
}

func (e *ChangedHostError) Error() string {
	if e.OfSSH {
		return fmt.Sprintf("ssh knows another key for the host of %s, whose key is %s %s",
			e.Host, e.Key.Type(), ssh.FingerprintSHA256(e.Key))
	}
	return fmt.Sprintf("the key of %s has changed: it is %s %s, and known_hosts has another one",
		e.Host, e.Key.Type(), ssh.FingerprintSHA256(e.Key))
}

// A RevokedHostError is the error of a server whose key, or its authority's, is marked as revoked.
type RevokedHostError struct {
	Host string
	Key  ssh.PublicKey
}

func (e *RevokedHostError) Error() string {
	return fmt.Sprintf("the key of %s is revoked: %s %s", e.Host, e.Key.Type(), ssh.FingerprintSHA256(e.Key))
}

// A RefusedHostError is the error of a server whose key the rules do not allow.
type RefusedHostError struct {
	Host string
	Key  ssh.PublicKey
	Err  error // why
}

func (e *RefusedHostError) Error() string {
	return fmt.Sprintf("the key of %s is refused: %v", e.Host, e.Err)
}
