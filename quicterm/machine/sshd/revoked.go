//go:build linux || darwin

package sshd

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/auth"
)

// revokedFiles are the files of RevokedKeys. One is read again when it changes.
type revokedFiles struct {
	mu    sync.Mutex
	files map[string]*revokedFile // by their names; nil for none
}

type revokedFile struct {
	info os.FileInfo
	keys *auth.RevokedKeys
}

// maxRevokedFiles bounds the files that are kept: sshd's configuration names a few.
const maxRevokedFiles = 16

// has reports whether one of some files revokes a key. sshd refuses all keys if it cannot read a
// file, and so must the caller; that a key is revoked counts before.
func (r *revokedFiles) has(names []string, key ssh.PublicKey) (bool, error) {
	var unread error
	for _, name := range names {
		keys, err := r.read(name)
		if err == nil && keys.Has(key) {
			return true, nil
		}
		unread = errors.Join(unread, err)
	}
	return false, unread
}

func (r *revokedFiles) read(name string) (*auth.RevokedKeys, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.files[name]
	if known != nil && os.SameFile(known.info, info) && known.info.Size() == info.Size() &&
		known.info.ModTime().Equal(info.ModTime()) {
		return known.keys, nil
	}
	content, info, err := auth.ReadFile(name, auth.MaxRevoked)
	if err != nil {
		return nil, err
	}
	keys, err := auth.ParseRevokedKeys(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if r.files == nil || len(r.files) >= maxRevokedFiles {
		r.files = make(map[string]*revokedFile)
	}
	r.files[name] = &revokedFile{info, keys}
	return keys, nil
}
