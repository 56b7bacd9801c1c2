//go:build linux || darwin

package quicterm

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/quic-go/quic-go"

	"github.com/quicterm/quicterm/quicterm/auth"
)

// secrets are keys that a daemon hands on to the next: with them, clients of
// the last one learn in one round trip that it is gone.
type secrets struct {
	Reset quic.StatelessResetKey
	Token quic.TokenGeneratorKey
}

// loadSecrets reads the secrets from a file, which it makes if there is none.
func loadSecrets(file string) (*secrets, error) {
	s := new(secrets)
	size := len(s.Reset) + len(s.Token)
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		content = make([]byte, size)
		if _, err := rand.Read(content); err != nil {
			return nil, err
		}
		if err := auth.WriteSecret(file, content); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("keep secrets: %w", err)
		}
		content, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, err
	}
	if len(content) != size {
		return nil, fmt.Errorf("%s has %d bytes, not %d: remove it, and it is made anew", file, len(content), size)
	}
	copy(s.Token[:], content[copy(s.Reset[:], content):])
	return s, nil
}
