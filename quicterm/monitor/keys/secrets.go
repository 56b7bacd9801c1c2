//go:build linux || darwin

package keys

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/quicterm/quicterm/quicterm/auth"
)

// secrets are QUIC keys that outlive a daemon. With them the next daemon tells clients of the last one within a round
// trip that it is gone (RFC 9000, 10.3), and accepts the address tokens that the last one gave out (RFC 9000, 8.1.3).
type Secrets struct {
	file         string
	Reset        [32]byte
	AddressToken [32]byte
}

// secretsAge is how long they are used at least: what has seen them cannot end connections for much longer than that.
const secretsAge = 7 * ticketKeyDay

// LoadSecrets reads the secrets from a file. It makes the file if there is none.
func LoadSecrets(file string) (*Secrets, error) {
	s := &Secrets{file: file}
	size := len(s.Reset) + len(s.AddressToken)
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		content = make([]byte, size)
		if _, err := rand.Read(content); err != nil {
			return nil, err
		}
		if err := auth.WriteSecret(file, content); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("write secrets: %w", err)
		}
		content, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, err
	}
	if len(content) != size {
		return nil, fmt.Errorf("%s has %d bytes, not %d: remove it, and the daemon makes a new one", file, len(content), size)
	}
	copy(s.AddressToken[:], content[copy(s.Reset[:], content):])
	return s, nil
}

// Retire removes secrets that are old, at the end of a daemon that has told its clients: none of them waits for a
// reset, so the next daemon can make others.
func (s *Secrets) Retire(now time.Time) error {
	info, err := os.Stat(s.file)
	if err != nil || now.Sub(info.ModTime()) < secretsAge {
		return err
	}
	return os.Remove(s.file)
}
