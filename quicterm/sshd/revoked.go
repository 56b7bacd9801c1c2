//go:build linux || darwin

package sshd

import (
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/auth"
)

// A revokedFile is the RevokedKeys file that was read last. It is read again when it changes.
type revokedFile struct {
	mu   sync.Mutex
	name string
	info os.FileInfo
	keys *auth.RevokedKeys
}

// has reports whether a file revokes a key. sshd refuses all keys if it cannot read the file,
// and so must the caller.
func (r *revokedFile) has(name string, key ssh.PublicKey) (bool, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.name != name || !os.SameFile(r.info, info) || !r.info.ModTime().Equal(info.ModTime()) || r.info.Size() != info.Size() {
		content, err := io.ReadAll(io.LimitReader(f, auth.MaxRevoked+1))
		if err != nil {
			return false, err
		}
		if len(content) > auth.MaxRevoked {
			return false, fmt.Errorf("%s: larger than %d bytes", name, auth.MaxRevoked)
		}
		keys, err := auth.ParseRevokedKeys(content)
		if err != nil {
			return false, fmt.Errorf("%s: %w", name, err)
		}
		r.name, r.info, r.keys = name, info, keys
	}
	return r.keys.Has(key), nil
}
