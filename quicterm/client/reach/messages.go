package reach

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/client/bootstrap"
	"github.com/quicterm/quicterm/quicterm/client/sshconfig"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// sayForSSH prints a line of ssh, or of the program that starts the daemon.
func sayForSSH(line string) { fmt.Fprintln(os.Stderr, line) }

// Say prints a line for the user.
func Say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "qt: "+format+"\n", args...)
}

// Complain prints an error in one line.
func Complain(err error) {
	lines := strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' })
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	Say("%s", strings.Join(lines, "; "))
}

// Messages about the server's key and the user's secrets.
const (
	unknownHostQuestion = "The server %s is not known. Its key is\n%s %s\n" +
		"Is this the right key, and do you want to connect (yes/no)? "
	otherKeyQuestion = "If you know that this is the key of the daemon, type its fingerprint to connect;\n" +
		"otherwise type no: "
	keyAdded    = "the key of %s, %s %s, was not known and is added to %s"
	keyNotKept  = "the key of %s is accepted for this connection only: it could not be saved: %v"
	keyNotFound = "the key of %s is accepted for this connection only: it was saved to %s but is not found there"
)

var (
	errNoTTYForSecret = errors.New("a passphrase is needed, and there is no terminal to ask for it: use ssh-add")
	errBatch          = errors.New("a passphrase is needed, and the user is not to be asked: use ssh-add")
	errNoSecret       = errors.New("no passphrase was typed")
	errKeyDeclined    = errors.New("not connected: you did not accept the server's key")
)

// waiting says what a client does that has no answer yet.
const waiting = "no answer yet from %s, UDP and TCP port %d"

// HintError is an error with a hint what to try.
type HintError struct {
	Err  error
	Hint string
}

func (e *HintError) Error() string { return e.Err.Error() + ": " + e.Hint }
func (e *HintError) Unwrap() error { return e.Err }

// WithHint adds to an error what to try.
func WithHint(err error, format string, args ...any) error {
	return &HintError{err, fmt.Sprintf(format, args...)}
}

// Explain adds to an error of connecting to a target what to try.
func Explain(err error, t *Target) error {
	var unreachable *client.UnreachableError
	var changed *auth.ChangedHostError
	var unknown *auth.UnknownHostError
	var refused *auth.RefusedHostError
	var denied *client.DeniedError
	var unresolved *net.DNSError
	var version *bootstrap.VersionError
	var login *bootstrap.LoginError
	var answer *wire.Error
	switch {
	case errors.As(err, &answer) && answer.Code == wire.CodeNoSession && t.Local:
		return fmt.Errorf("this machine: %w", err)
	case errors.As(err, &answer) && answer.Code == wire.CodeNoSession:
		return fmt.Errorf("%s: %w", t.Name, err)
	case errors.As(err, new(*bootstrap.MissingError)):
		return WithHint(err, "qt install %s puts it there", t.typed)
	case errors.As(err, &version):
		return WithHint(err, "update qt here, or qtd there with qt install %s", t.typed)
	case errors.Is(err, bootstrap.ErrNoSSH):
		return WithHint(err, "install it, or reach the daemon's port with --bootstrap direct")
	case errors.Is(err, bootstrap.ErrNoProgram):
		return WithHint(err, "install it beside qt, or in a directory of PATH")
	case errors.As(err, &changed):
		if changed.OfSSH {
			return WithHint(changed, "if the daemon has a key of its own, connect once from a terminal to accept it "+
				"(not with StrictHostKeyChecking on or accept-new); if not, this may be an attack")
		}
		return WithHint(changed, "if the server has a new key, remove the old one (%s); if not, this may be an attack",
			where(changed.Known))
	case t.unattended && (errors.Is(err, client.ErrNoKeys) || errors.As(err, &login) && login.NeedsUser()):
		return WithHint(err, "no user is asked here: use a key that needs no passphrase and no touch, such as one of an agent, "+
			"and connect once with qt connect %s", t.typed)
	case errors.As(err, &unknown) && t.Unknown == sshconfig.Refuse && !t.unattended:
		return WithHint(unknown, "StrictHostKeyChecking or BatchMode is on: add the key to known_hosts")
	case errors.As(err, &unknown):
		return WithHint(unknown, "connect once from a terminal to accept it, or add it to known_hosts")
	case errors.As(err, &refused):
		return WithHint(refused, "see HostKeyAlgorithms and RequiredRSASize in ssh's configuration")
	case errors.Is(err, client.ErrNoKeys):
		return WithHint(err, "start an agent with ssh-add, or name a private key with -i")
	case errors.As(err, &denied) && denied.Failed != nil:
		return fmt.Errorf("permission denied by %s for %s: %w", t.Name, t.User, denied.Failed)
	case errors.As(err, &denied):
		return fmt.Errorf("permission denied by %s for %s: is one of your keys in the account's authorized_keys? "+
			"qt connect -v shows which were offered", t.Name, t.User)
	case errors.Is(err, client.ErrBusy):
		return WithHint(err, "try again in a moment")
	case errors.As(err, &unresolved):
		return WithHint(fmt.Errorf("%s: %w", t.Name, NameError{unresolved}), "check the name of the host and your network")
	case errors.As(err, &unreachable):
		return WithHint(fmt.Errorf("%s, UDP and TCP port %d: %w", t.Name, t.DaemonPort, err),
			"check that qtd runs there and that the port is open")
	}
	return err
}

// nothingAnswers adds to the error of a host where sshd is not reached that the daemon is not either.
func nothingAnswers(login error, port uint16) error {
	return fmt.Errorf("%w; and nothing answers at port %d, by UDP or TCP", login, port)
}

// A NameError is an error of resolving a name, without the name and the server that was asked.
type NameError struct{ Err *net.DNSError }

func (e NameError) Error() string { return e.Err.Err }
func (e NameError) Unwrap() error { return e.Err }

// where lists the places of known keys.
func where(known []auth.KnownKey) string {
	var places []string
	for _, k := range known {
		places = append(places, k.Where)
	}
	return strings.Join(places, ", ")
}

// warnChanged warns, in several lines, that a server has another key than the known one.
func warnChanged(e *auth.ChangedHostError) {
	title := "THE KEY OF THE SERVER HAS CHANGED"
	reason := "or the server was installed anew."
	if e.OfSSH {
		title = "THE SERVER HAS ANOTHER KEY THAN SSH KNOWS FOR THIS HOST"
		reason = "or the daemon has another key than sshd."
	}
	Say("@@@ WARNING: %s @@@", title)
	Say("the key of %s is %s %s", e.Host, e.Key.Type(), ssh.FingerprintSHA256(e.Key))
	for _, k := range e.Known {
		Say("known is %s %s (%s)", k.Key.Type(), ssh.FingerprintSHA256(k.Key), k.Where)
	}
	Say("An attacker may be intercepting the connection, to read everything that you type, %s", reason)
}

// warnUnprotected warns, as loudly as ssh, that others may know a private key.
func warnUnprotected(e *auth.UnprotectedError) {
	Say("@@@ WARNING: UNPROTECTED PRIVATE KEY FILE @@@")
	Say("permissions %04o of %s are too open: others may read it, so this key is not used; try chmod 600", e.Mode, e.File)
}

// Place names a host in a sentence, in which "." would read as its end.
func Place(host string) string {
	if host == ThisMachine {
		return "this machine"
	}
	return host
}
