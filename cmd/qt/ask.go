package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/crypto/ssh"

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

// confirmHost asks whether an unknown key is the server's. Its error is errKeyDeclined if
// the answer is not yes, or another one if there is no terminal to ask on.
func confirmHost(host string, key ssh.PublicKey) error {
	tty, err := terminal.OpenTTY()
	if err != nil {
		return err
	}
	defer tty.Close()
	fingerprint := ssh.FingerprintSHA256(key)
	fmt.Fprintf(tty, unknownHostQuestion, host, key.Type(), fingerprint)
	var answer string
	for {
		if _, err := fmt.Fscanln(tty, &answer); err != nil && answer == "" {
			return errKeyDeclined
		}
		switch strings.ToLower(answer) {
		case "yes", strings.ToLower(fingerprint):
			return nil
		case "no":
			return errKeyDeclined
		}
		answer = ""
		fmt.Fprint(tty, yesOrNo)
	}
}
