//go:build linux || darwin

// Package keys has the secret keys that outlive a daemon, and their files: those of the host, those of TLS tickets, and
// those of QUIC. It makes what does not exist.
package keys

import (
	"errors"
	"io/fs"
	"log/slog"

	"github.com/quicterm/quicterm/quicterm/auth"
)

// SSHHostKeys are the host keys of sshd, in the order in which the daemon prefers them.
var SSHHostKeys = []string{
	"/etc/ssh/ssh_host_ed25519_key",
	"/etc/ssh/ssh_host_ecdsa_key",
	"/etc/ssh/ssh_host_rsa_key",
}

// LoadHostKeys reads the given files. Without files it reads those of sshd that exist, if shared is set. If there is
// no key then, it reads the file own, and makes it if it does not exist. A key gets the ssh certificate that is
// beside it, as ssh-keygen -s writes it.
func LoadHostKeys(log *slog.Logger, files []string, shared bool, own string) ([]*auth.HostKey, error) {
	optional := len(files) == 0
	if optional && shared {
		files = SSHHostKeys
	}
	var keys []*auth.HostKey
	add := func(file string, load func(string) (*auth.HostKey, error)) error {
		key, err := load(file)
		if err != nil {
			return err
		}
		if err := key.LoadCertificate(file + "-cert.pub"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			log.Warn("clients get no host certificate", "error", err)
		}
		keys = append(keys, key)
		return nil
	}
	for _, file := range files {
		if err := add(file, auth.LoadHostKey); err != nil && !(optional && errors.Is(err, fs.ErrNotExist)) {
			return nil, err
		}
	}
	if len(keys) == 0 {
		if err := add(own, auth.LoadOrCreateHostKey); err != nil {
			return nil, err
		}
	}
	return keys, nil
}
