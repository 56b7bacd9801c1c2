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
	f, info, err := open(name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.name != name || !os.SameFile(r.info, info) || !r.info.ModTime().Equal(info.ModTime()) || r.info.Size() != info.Size() {
		content, err := readAll(f, auth.MaxRevoked)
		if err != nil {
			return false, err
		}
		keys, err := auth.ParseRevokedKeys(content)
		if err != nil {
			return false, fmt.Errorf("%s: %w", name, err)
		}
		r.name, r.info, r.keys = name, info, keys
	}
	return r.keys.Has(key), nil
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
