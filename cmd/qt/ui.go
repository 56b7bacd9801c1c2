package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/term"

	"github.com/quicterm/quicterm/quicterm"
	"github.com/quicterm/quicterm/quicterm/auth"
)

// How qt talks to people:
//
//   - What they asked for goes to standard output; all else to standard error,
//     in one line that begins with "qt: ".
//   - An error says what failed, on what, and what to try.
//   - While a terminal is raw, lines end in \r\n, and nothing is written inside
//     a control sequence of the program that draws on it.
//   - Questions are asked on the terminal itself, and only if there is one.

// hintError is an error with something to try.
type hintError struct {
	err  error
	hint string
}

func (e *hintError) Error() string { return e.err.Error() + ": " + e.hint }
func (e *hintError) Unwrap() error { return e.err }

func withHint(err error, format string, args ...any) error {
	return &hintError{err, fmt.Sprintf(format, args...)}
}

// complain prints an error.
func complain(err error) {
	lines := strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' })
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	say("%s", strings.Join(lines, "; "))
}

// say prints a line for the person.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "qt: "+format+"\n", args...)
}

// explain adds to an error of connecting to a target what to try.
func explain(err error, t *target) error {
	var unreachable *quicterm.UnreachableError
	var changed *auth.ChangedHostError
	var unknown *auth.UnknownHostError
	var denied *quicterm.DeniedError
	var unresolved *net.DNSError
	switch {
	case errors.As(err, &changed):
		return withHint(changed, "if that is expected, remove the old key (%s); if not, somebody may be listening in", strings.Join(changed.Known, ", "))
	case errors.As(err, &unknown):
		return withHint(unknown, "connect once from a terminal to accept it, or add it to known_hosts")
	case errors.Is(err, quicterm.ErrNoKeys):
		return withHint(err, "start an agent with ssh-add, or name a private key with -i")
	case errors.As(err, &denied) && denied.Failed != nil:
		return fmt.Errorf("permission denied by %s for %s: %w", t.name, t.user, denied.Failed)
	case errors.As(err, &denied):
		return fmt.Errorf("permission denied by %s for %s: is one of your keys in the account's authorized_keys? qt connect -v says which were offered", t.name, t.user)
	case errors.Is(err, quicterm.ErrBusy):
		return withHint(err, "try again in a moment")
	case errors.As(err, &unresolved):
		return withHint(fmt.Errorf("%s: %s", t.name, unresolved.Err), "is that its name, and is there a network?")
	case errors.As(err, &unreachable):
		return withHint(fmt.Errorf("%s, UDP port %d: %w", t.name, t.port, err), "is qtd running there, and is the port open?")
	}
	return err
}

// A terminal is where questions are asked, whatever the standard streams are.
type terminal struct{ in, out *os.File } // may be the same

func (t *terminal) Read(b []byte) (int, error)  { return t.in.Read(b) }
func (t *terminal) Write(b []byte) (int, error) { return t.out.Write(b) }

func (t *terminal) Close() {
	t.in.Close()
	t.out.Close()
}

// askSecret asks for something that is not shown.
func askSecret(prompt string) ([]byte, error) {
	tty, err := openTerminal()
	if err != nil {
		return nil, errors.New("a passphrase is needed, and there is no terminal to ask for it: use ssh-add")
	}
	defer tty.Close()
	// Nothing that is typed from the prompt on is to be shown.
	restore, err := makeRaw(int(tty.in.Fd()))
	if err != nil {
		return nil, err
	}
	defer restore()
	screen := term.NewTerminal(tty, "")
	if cols, rows, err := term.GetSize(int(tty.out.Fd())); err == nil && cols > 0 {
		screen.SetSize(cols, rows)
	}
	secret, err := screen.ReadPassword(prompt)
	if errors.Is(err, io.EOF) {
		err = errors.New("no passphrase was given")
	}
	return []byte(secret), err
}

// confirmHost asks the person whether an unknown key is the server's.
func confirmHost(host string, key ssh.PublicKey) bool {
	tty, err := openTerminal()
	if err != nil {
		return false
	}
	defer tty.Close()
	fmt.Fprintf(tty, "The server %s is not known. Its key is\n%s %s\nIs that its key, and do you want to connect (yes/no)? ",
		host, key.Type(), ssh.FingerprintSHA256(key))
	var answer string
	for {
		if _, err := fmt.Fscanln(tty, &answer); err != nil && answer == "" {
			return false
		}
		switch strings.ToLower(answer) {
		case "yes", ssh.FingerprintSHA256(key):
			return true
		case "no":
			return false
		}
		answer = ""
		fmt.Fprint(tty, "Please type yes or no: ")
	}
}
