//go:build linux || darwin

package sshd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

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

// read returns the keys that a file revokes.
func (r *revokedFiles) read(name string) (*auth.RevokedKeys, error) {
	f, info, err := open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.files[name]
	if known != nil && os.SameFile(known.info, info) && known.info.ModTime().Equal(info.ModTime()) && known.info.Size() == info.Size() {
		return known.keys, nil
	}
	content, err := readAll(f, auth.MaxRevoked)
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

// open opens a file that a setting names. It does not wait for a writer, as opening a pipe does.
func open(name string) (*os.File, os.FileInfo, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// readAll reads a file of at most some bytes.
func readAll(f *os.File, most int64) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(content)) > most {
		err = fmt.Errorf("%s: larger than %d bytes", f.Name(), most)
	}
	return content, err
}

// ReadFile reads a file that a setting names, of at most some bytes.
func ReadFile(name string, most int64) ([]byte, error) {
	f, _, err := open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f, most)
}
