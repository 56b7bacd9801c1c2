package reach

import (
	"errors"
	"io"
	"syscall"

	"github.com/quicterm/quicterm/quicterm/terminal"
)

// AskSecret asks the user at the terminal for a line, which is not shown.
func AskSecret(prompt string) ([]byte, error) {
	tty, err := terminal.OpenTTY()
	if err != nil {
		return nil, errNoTTYForSecret
	}
	defer tty.Close()
	secret, err := tty.ReadSecret(prompt)
	return []byte(secret), unanswered(err, errNoSecret)
}

// unanswered returns the error of a question that was not answered: as of a signal for Ctrl-C, and
// none for the end of the input.
func unanswered(err, none error) error {
	switch {
	case errors.Is(err, terminal.ErrInterrupted):
		return &SignalError{Signal: syscall.SIGINT}
	case errors.Is(err, io.EOF):
		return none
	}
	return err
}
