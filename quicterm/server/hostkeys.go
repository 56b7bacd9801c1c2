//go:build linux || darwin

package server

import (
	"errors"
	"io/fs"

	"github.com/quicterm/quicterm/quicterm/auth"
)

// sshHostKeys are the host keys of sshd, in the order in which the daemon prefers
// them.
var sshHostKeys = []string{
	"/etc/ssh/ssh_host_ed25519_key",
	"/etc/ssh/ssh_host_ecdsa_key",
	"/etc/ssh/ssh_host_rsa_key",
}

// loadHostKeys reads the given files. Without files it reads those of sshd that exist,
// if shared is set. If there is no key then, it reads the file own, and makes it if
// it does not exist.
func loadHostKeys(files []string, shared bool, own string) ([]*auth.HostKey, error) {
	optional := len(files) == 0
	if optional && shared {
		files = sshHostKeys
	}
	var keys []*auth.HostKey
	for _, file := range files {
		key, err := auth.LoadHostKey(file)
		if optional && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	if len(keys) > 0 {
		return keys, nil
	}
	key, err := auth.LoadOrCreateHostKey(own)
	if err != nil {
		return nil, err
	}
	return []*auth.HostKey{key}, nil
}
