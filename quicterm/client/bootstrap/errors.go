package bootstrap

import (
	"errors"
	"fmt"
	"strings"
)

// ErrNoSSH means that this machine has no ssh program.
var ErrNoSSH = errors.New("there is no ssh on this machine")

var errClosed = errors.New("ssh is not used any more")

// errSilent is the error of a carrier on which the daemon has answered nothing.
var errSilent = errors.New("the daemon does not answer over ssh")

// A StartError means that there is no carrier: the daemon was asked for nothing.
type StartError struct{ Err error }

func (e *StartError) Error() string { return e.Err.Error() }
func (e *StartError) Unwrap() error { return e.Err }

// Reasons of a login that does not end. ssh asks for the touch of a key only where it may ask.
const (
	tooLong    = "it takes too long"
	maybeTouch = "it waits, maybe for the touch of a key"
)

// A LoginError means that ssh could not log in.
type LoginError struct {
	Host   string
	Reason string // what ssh says, in one printable line
}

func (e *LoginError) Error() string { return "ssh to " + e.Host + ": " + e.Reason }

// Unreachable reports whether nothing answered where sshd should.
func (e *LoginError) Unreachable() bool { return strings.HasPrefix(e.Reason, "connect to host ") }

// NeedsUser reports whether the login may succeed if the user answers a question, or touches a key.
func (e *LoginError) NeedsUser() bool {
	return e.Reason == maybeTouch || strings.Contains(e.Reason, "Permission denied (") ||
		strings.Contains(e.Reason, "Host key verification failed")
}

// A MissingError means that the server has no qtd.
type MissingError struct{ Host string }

func (e *MissingError) Error() string { return "qtd is not installed on " + e.Host }

// A VersionError means that the two ends are of versions that do not understand each other.
type VersionError struct {
	Host     string
	Software string // of the server, printable; empty if not known
}

func (e *VersionError) Error() string {
	name := e.Software
	if name == "" {
		name = "qtd"
	}
	return fmt.Sprintf("%s on %s has another version than this qt", name, e.Host)
}

// lastWords are how the last lines of ssh begin or what they have in them, before it ends
// because it could not log in.
var lastWords = []string{
	"ssh: ", "Connection ", "kex_exchange_identification: ", "banner exchange: ",
	"Received disconnect from ", "Disconnected from ",
	"Host key verification failed", "Bad configuration option", "command-line: ", "Too many authentication failures",
	"qtd: ", "sh: ", "/bin/sh: ", // over a connection that was there already, nothing tells when the login is done
}

// isLastWord reports whether ssh says in a line why it ends.
func isLastWord(line string) bool {
	if strings.Contains(line, ": Permission denied (") || strings.Contains(line, " host key is known for ") {
		return true
	}
	for _, begin := range lastWords {
		if strings.HasPrefix(line, begin) {
			return true
		}
	}
	return false
}

// loginError returns what the last lines of ssh say.
func loginError(host string, lines []string) *LoginError {
	if len(lines) == 0 {
		return &LoginError{host, "it could not log in"}
	}
	reason := strings.TrimPrefix(lines[0], "ssh: ")
	// With a jump host, its reason comes first, and then only that the connection was closed.
	for _, line := range lines[1:] {
		if !strings.HasPrefix(line, "Connection closed by ") {
			reason += "; " + strings.TrimPrefix(line, "ssh: ")
		}
	}
	return &LoginError{host, reason}
}

// noGrant returns what a line with another prefix than that of a grant means.
func noGrant(host, prefix string) error {
	if prefix == missingLine {
		return &MissingError{host}
	}
	return fmt.Errorf("%s runs another program than qtd, which repeats what it is sent", host)
}

func silentError(host string) error {
	return fmt.Errorf("%s runs another program than qtd, which neither answers nor ends", host)
}

// programError returns why the program that a login ran is no qtd that works. Lines are those
// of its standard error, and last the last one of its output.
func programError(host string, status int, lines []string, last string) error {
	said := last
	if len(lines) > 0 {
		said = lines[len(lines)-1]
	}
	text, ours := strings.CutPrefix(said, "qtd: ")
	switch {
	case ours && (strings.HasPrefix(text, "unknown flag") || strings.HasPrefix(text, "unknown command")):
		return &VersionError{Host: host}
	case ours:
		return fmt.Errorf("qtd on %s: %s", host, text)
	case status == 126:
		return fmt.Errorf("qtd on %s cannot be run: %s", host, said)
	case said == "":
		return fmt.Errorf("%s runs another program than qtd, which says nothing and ends with status %d", host, status)
	}
	return fmt.Errorf("%s runs another program than qtd, which says: %s", host, said)
}
