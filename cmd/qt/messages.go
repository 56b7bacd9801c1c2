package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/client/bootstrap"
	"github.com/quicterm/quicterm/quicterm/client/install"
	"github.com/quicterm/quicterm/quicterm/client/sshconfig"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// The texts that qt shows are in this file, except for the help of commands, which
// stands with their flags, and the tables of qt ls and qt status. The rules:
//
//   - What the user asked for goes to standard output; everything else goes to standard
//     error, in one line that begins with "qt: "; a warning takes more.
//   - An error says what failed, on what, and what to try.
//   - Package terminal has the texts of a session on a terminal.
//   - Questions are asked on the terminal itself, and only if there is one.

// place names a host in a sentence, in which "." would read as its end.
func place(host string) string {
	if host == thisMachine {
		return "this machine"
	}
	return host
}

// sayForSSH prints a line of ssh, or of the program that starts the daemon.
func sayForSSH(line string) { fmt.Fprintln(os.Stderr, line) }

// say prints a line for the user.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "qt: "+format+"\n", args...)
}

// complain prints an error in one line.
func complain(err error) {
	lines := strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' })
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	say("%s", strings.Join(lines, "; "))
}

// maxNotDrawn bounds how many characters notDrawn names, for a line of a terminal.
const maxNotDrawn = 8

// notDrawn says which characters an image has only boxes for.
func notDrawn(missing []rune) string {
	var names []string
	for _, r := range missing[:min(len(missing), maxNotDrawn)] {
		names = append(names, fmt.Sprintf("%U", r))
	}
	if more := len(missing) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("characters that the font of images does not have: %d, drawn as boxes or left out (%s); --ansi and --json have them", len(missing), strings.Join(names, ", "))
}

// What qt clear-history tells.
const (
	historyCleared = "session %s has forgotten %d bytes of output, and %d lines of scrollback"
	historyKept    = "%d bytes are kept that no client has had, or that one is about to get: attach to see them"
)

// flagOfSSH tells what to use in place of a flag of ssh.
const flagOfSSH = `-%s is a flag of ssh: use it through "ssh HOST.qt", which goes through qt; qt ssh-config HOST prints the block for ~/.ssh/config`

// Messages about sessions that are not named.
const (
	nameSession     = "name it, as in qt %s %s NAME; qt ls lists the sessions, and \".\" is this machine"
	sessionQuestion = "Which session, by its name or the beginning of it (Enter for %s, or no)? "
	needsTerminal   = "%s needs a terminal"
	noSuchChoice    = "no session begins with %q, or more than one does"
	noneDetached    = "no session on %s is detached"
)

// linesUnseen tells of what the screen at an attach leaves out.
const linesUnseen = "about %d lines that were printed while no client was attached are not shown; what the server kept of them: qt attach --replay raw %s %s"

// Messages about the server's key and the user's secrets.
const (
	unknownHostQuestion = "The server %s is not known. Its key is\n%s %s\nIs this the right key, and do you want to connect (yes/no)? "
	otherKeyQuestion    = "If you know that this is the key of the daemon, type its fingerprint to connect;\notherwise type no: "
	keyAdded            = "the key of %s, %s %s, was not known and is added to %s"
	keyNotKept          = "the key of %s is accepted for this connection only: it could not be saved: %v"
	keyNotFound         = "the key of %s is accepted for this connection only: it was saved to %s but is not found there"
)

var (
	errNoSession      = errors.New("no session is named")
	errNoneRuns       = errors.New("no session runs on a terminal: qt connect opens one")
	errNoTTYForSecret = errors.New("a passphrase is needed, and there is no terminal to ask for it: use ssh-add")
	errBatch          = errors.New("a passphrase is needed, and BatchMode is on: use ssh-add")
	errNoSecret       = errors.New("no passphrase was typed")
	errKeyDeclined    = errors.New("not connected: you did not accept the server's key")
)

// hintError is an error with a hint what to try.
type hintError struct {
	err  error
	hint string
}

func (e *hintError) Error() string { return e.err.Error() + ": " + e.hint }
func (e *hintError) Unwrap() error { return e.err }

func withHint(err error, format string, args ...any) error {
	return &hintError{err, fmt.Sprintf(format, args...)}
}

// explain adds to an error of connecting to a target what to try.
func explain(err error, t *target) error {
	var unreachable *client.UnreachableError
	var changed *auth.ChangedHostError
	var unknown *auth.UnknownHostError
	var refused *auth.RefusedHostError
	var denied *client.DeniedError
	var unresolved *net.DNSError
	var version *bootstrap.VersionError
	switch {
	case errors.As(err, new(*bootstrap.MissingError)):
		return withHint(err, "qt install %s puts it there", t.typed)
	case errors.As(err, &version):
		return withHint(err, "update qt here, or qtd there with qt install %s", t.typed)
	case errors.Is(err, bootstrap.ErrNoSSH):
		return withHint(err, "install it, or reach the daemon's port with --bootstrap direct")
	case errors.Is(err, bootstrap.ErrNoProgram):
		return withHint(err, "install it beside qt, or in a directory of PATH")
	case errors.As(err, &changed):
		if changed.OfSSH {
			return withHint(changed, "if the daemon has a key of its own, connect once from a terminal to accept it (not with StrictHostKeyChecking on or accept-new); if not, this may be an attack")
		}
		return withHint(changed, "if the server has a new key, remove the old one (%s); if not, this may be an attack", where(changed.Known))
	case errors.As(err, &unknown) && t.Unknown == sshconfig.Refuse:
		return withHint(unknown, "StrictHostKeyChecking or BatchMode is on: add the key to known_hosts")
	case errors.As(err, &unknown):
		return withHint(unknown, "connect once from a terminal to accept it, or add it to known_hosts")
	case errors.As(err, &refused):
		return withHint(refused, "see HostKeyAlgorithms and RequiredRSASize in ssh's configuration")
	case errors.Is(err, client.ErrNoKeys):
		return withHint(err, "start an agent with ssh-add, or name a private key with -i")
	case errors.As(err, &denied) && denied.Failed != nil:
		return fmt.Errorf("permission denied by %s for %s: %w", t.Name, t.User, denied.Failed)
	case errors.As(err, &denied):
		return fmt.Errorf("permission denied by %s for %s: is one of your keys in the account's authorized_keys? qt connect -v shows which were offered", t.Name, t.User)
	case errors.Is(err, client.ErrBusy):
		return withHint(err, "try again in a moment")
	case errors.As(err, &unresolved):
		return withHint(fmt.Errorf("%s: %w", t.Name, nameError{unresolved}), "check the name of the host and your network")
	case errors.As(err, &unreachable):
		return withHint(fmt.Errorf("%s, UDP and TCP port %d: %w", t.Name, t.daemonPort, err), "check that qtd runs there and that the port is open")
	}
	return err
}

// nothingAnswers adds to the error of a host where sshd is not reached that the daemon is not either.
func nothingAnswers(login error, port uint16) error {
	return fmt.Errorf("%w; and nothing answers at port %d, by UDP or TCP", login, port)
}

// A nameError is an error of resolving a name, without the name and the server that was asked.
type nameError struct{ err *net.DNSError }

func (e nameError) Error() string { return e.err.Err }
func (e nameError) Unwrap() error { return e.err }

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
	say("@@@ WARNING: %s @@@", title)
	say("the key of %s is %s %s", e.Host, e.Key.Type(), ssh.FingerprintSHA256(e.Key))
	for _, k := range e.Known {
		say("known is %s %s (%s)", k.Key.Type(), ssh.FingerprintSHA256(k.Key), k.Where)
	}
	say("An attacker may be intercepting the connection, to read everything that you type, %s", reason)
}

// warnUnprotected warns, as loudly as ssh, that others may know a private key.
func warnUnprotected(e *auth.UnprotectedError) {
	say("@@@ WARNING: UNPROTECTED PRIVATE KEY FILE @@@")
	say("permissions %04o of %s are too open: others may read it, so this key is not used; try chmod 600", e.Mode, e.File)
}

// askingAgain says why a client still tries to attach.
const askingAgain = "the connection was lost before %s answered; asking again for %v at most"

// Messages about recordings.
const (
	recordingNow     = "recording session %s on %s; Ctrl-C ends the recording"
	recordedFor      = "recorded %s into %s"
	recordedInto     = "recorded into %s"
	recordingFailed  = "the recording %s ends here: %v"
	recordingHasGaps = "the recording is not complete: %d bytes of output are missing, where it has markers"
	recordingExists  = "%s exists already: name another file"
	recordsThere     = "the setting record says that sessions are recorded there"
)

// recordingIsLarger warns that a recording is of a larger terminal than ours.
const recordingIsLarger = "[qt: the recording is of a terminal with %d columns and %d rows; this one has %d and %d]"

// partShown says what part of a recorded screen is shown.
func partShown(size wire.Size, column, row int) string {
	return fmt.Sprintf("%dx%d from %d,%d", size.Cols, size.Rows, column, row)
}

// waiting says what a client does that has no answer yet.
const waiting = "no answer yet from %s, UDP and TCP port %d"

// left says that the session continues without this client, and how it is resumed and ended.
func left(host string, opts *options, session string) string {
	resume := resumeCommand(host, opts, session)
	if opts.role == wire.RoleWatch {
		return "left; " + resume + " watches again"
	}
	return "left; " + resume + " resumes, " + endCommand(host, opts, session) + " ends it"
}

// What becomes of a session whose client a signal ends, or of a command that gets one.
const (
	sessionContinues = "the session continues, resume with: "
	commandHungUp    = "the command is hung up, and its session ends"
	signalPassed     = "SIG%s is passed on to the command; a second signal hangs it up and ends qt"
)

// sessionWasLost says what is above: a session, when it was seen last, why it is lost, and its directory.
const sessionWasLost = "session %s was lost after %s: %s; above is what it showed last, in %s"

const inputLost = "the last input did not reach the server and is lost"

// explainEnd adds to an error that ended a session what to try.
func explainEnd(err error, host, resume string) error {
	var displaced *client.DisplacedError
	var withdrawn *client.WithdrawnError
	switch {
	case errors.As(err, &withdrawn):
		return withHint(err, "the session continues without you; qt ls %s lists it if you may log in again", host)
	case errors.As(err, &displaced):
		return fmt.Errorf("%w; take it back with: %s", err, resume)
	case errors.Is(err, client.ErrGone):
		return withHint(err, "qt ls %s lists the sessions, and qt attach shows what is left of a lost one", host)
	}
	return err
}

// revoked says what qt revoke has done. It returns an error if that is not all.
func revoked(clients, silent int) error {
	what := fmt.Sprintf("%d clients have lost access", clients)
	if clients == 1 {
		what = "1 client has lost access"
	}
	if silent > 0 {
		return withHint(fmt.Errorf("%s, and %d sessions did not answer", what, silent), "their clients keep access; end them with qt kill")
	}
	say("%s", what)
	return nil
}

// What qt asks before it installs, what it is doing, and what follows from where it put qtd.
const (
	installQuestion = "qtd is not installed on %s. Copy it into ~/.local/bin there (yes/no)? "

	copying      = "copying qtd %s for %v, %s, to %s"
	anotherFirst = "%s on %s comes first in PATH: that qtd is used, not the copied one"
)

// installed says what qt install has done on a host.
func installed(r *install.Report, host string) string {
	if !r.Copied {
		return fmt.Sprintf("%s has this qtd already: %s, %s", host, r.Version, r.File)
	}
	text := fmt.Sprintf("%s on %s is installed: %s", r.Version, host, r.File)
	if r.Before != "" {
		text = fmt.Sprintf("%s on %s replaces %s: %s; sessions that run there continue", r.Version, host, r.Before, r.File)
	}
	if !r.Checked {
		text += " (its checksum is not known: there is no sha256sum)"
	}
	return text
}

// removed says what qt install --remove has done on a host.
func removed(r *install.Removal, host string) string {
	text := fmt.Sprintf("removed %s from %s; sessions that run there continue, and qt reaches them again after qt install", r.File, host)
	if r.Kept != "" {
		text += "; the keys of the daemon stay in " + r.Kept
	}
	return text
}

// whyEnded says why a session ended whose program did not end by itself, and nothing
// of other sessions.
func whyEnded(name, host string, exit wire.ExitStatus, now time.Time) string {
	if exit.Reason == "" {
		return ""
	}
	at, layout := exit.At.In(now.Location()), time.TimeOnly
	if at.Format(time.DateOnly) != now.Format(time.DateOnly) {
		layout = time.DateTime
	}
	return fmt.Sprintf("session %s on %s was %s, at %s", name, place(host), exit.Reason, at.Format(layout))
}

// resumeCommand returns the command that attaches to a session with the same options.
func resumeCommand(host string, opts *options, session string) string {
	words := []string{"qt", "attach"}
	switch opts.role {
	case wire.RoleShare:
		words = append(words, "--share")
	case wire.RoleWatch:
		words[1] = "watch"
	}
	words = appendFlag(words, "--predict", opts.predict)
	words = appendFlag(words, "-e", opts.escape)
	return withTarget(words, opts, host, session)
}

// endCommand returns the command that ends a session.
func endCommand(host string, opts *options, session string) string {
	return withTarget([]string{"qt", "kill"}, opts, host, session)
}

// withTarget returns a command with the flags that say how to reach its server, and then its arguments.
func withTarget(words []string, opts *options, args ...string) string {
	if opts.port != 0 {
		words = appendFlag(words, "-p", strconv.Itoa(int(opts.port)))
	}
	words = appendFlag(words, "-l", opts.user)
	words = appendFlag(words, "--bootstrap", opts.bootstrap)
	for _, file := range opts.identities {
		words = appendFlag(words, "-i", file)
	}
	words = appendFlag(words, "-F", opts.config)
	return strings.Join(append(words, args...), " ")
}

// appendFlag appends a flag unless its value is empty, quoted for a shell where that is needed.
func appendFlag(words []string, name, value string) []string {
	if value == "" {
		return words
	}
	return append(words, name, shellWord(value))
}
