package main

import (
	"errors"
	"io"

	"github.com/quicterm/quicterm/quicterm/terminal"
)

// askSecret asks for a passphrase, which is not shown.
func askSecret(prompt string) ([]byte, error) {
	tty, err := terminal.OpenTTY()
	if err != nil {
		return nil, errNoTTYForSecret
	}
	defer tty.Close()
	secret, err := tty.ReadSecret(prompt)
	if errors.Is(err, io.EOF) {
		err = errNoSecret
	}
	return []byte(secret), err
}
