package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/client/install"
	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// The texts that qt shows are in this file, except for the help of commands, which
// stands with their flags, and the tables of qt ls and qt status. The rules:
//
//   - What the user asked for goes to standard output; everything else goes to standard
//     error, in one line that begins with "qt: "; a warning takes more.
//   - An error says what failed, on what, and what to try.
//   - Package terminal has the texts of a session on a terminal, and package reach those of a login.
//   - Questions are asked on the terminal itself, and only if there is one.

// say prints a line for the user.
func say(format string, args ...any) { reach.Say(format, args...) }

// What qt clear-history tells.
const (
	historyCleared = "session %s has forgotten %d bytes of output, and %d lines of scrollback"
	historyKept    = "%d bytes are kept that no client has had, or that one is about to get: attach to see them"
)

// flagOfSSH tells what to use in place of a flag of ssh.
const flagOfSSH = `-%s is a flag of ssh: use it through "ssh HOST.qt", which goes through qt; ` +
	"qt ssh-config HOST prints the block for ~/.ssh/config"

var (
	errNoSession = errors.New("no session is named")
	errNoneRuns  = errors.New("no session runs on a terminal: qt connect opens one")
)

// Messages about sessions that are not named.
const (
	nameSession     = "name it, as in qt %s %s NAME; qt ls lists the sessions, and \".\" is this machine"
	sessionQuestion = "Which session, by its name or the beginning of it (Enter for %s, or no)? "
	needsTerminal   = "%s needs a terminal"
	noSuchChoice    = "no session begins with %q, or more than one does"
	noneDetached    = "no session on %s is detached"
	detachedEnd     = "sessions ended on %s: %d"
)

// linesUnseen tells of what the screen at an attach leaves out.
const linesUnseen = "about %d lines that were printed while no client was attached are not shown; " +
	"what the server kept of them: qt attach --replay raw %s %s"

// askingAgain says why a client still tries to attach.
const askingAgain = "the connection was lost before %s answered; asking again for %v at most"

// Messages about recordings.
const (
	recordingNow    = "recording session %s on %s; Ctrl-C ends the recording"
	recordedFor     = "recorded %s into %s"
	recordingExists = "%s exists already: name another file"
)

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
		return reach.WithHint(err, "the session continues without you; qt ls %s lists it if you may log in again", host)
	case errors.As(err, &displaced):
		return fmt.Errorf("%w; take it back with: %s", err, resume)
	case errors.Is(err, client.ErrDamaged):
		return reach.WithHint(err, "%s%s", sessionContinues, resume)
	case errors.Is(err, client.ErrGone):
		return reach.WithHint(err, "qt ls %s lists the sessions, and qt attach shows what is left of a lost one", host)
	}
	return err
}

// What qt share says.
const (
	guestTypes = "this guest can do anything that this account can, also after the share ends"
	shareEnds  = "the share %s ends in %s, or with qt shares %s --end %s"
)

// revoked says what qt revoke has done. It returns an error if that is not all.
func revoked(done wire.Revoked) error {
	what := fmt.Sprintf("%d clients have lost access", done.Clients)
	if done.Clients == 1 {
		what = "1 client has lost access"
	}
	if done.Keys > 0 {
		what += fmt.Sprintf(", and enrolled keys that were removed: %d", done.Keys)
	}
	if done.Silent > 0 {
		return reach.WithHint(fmt.Errorf("%s, and %d sessions did not answer", what, done.Silent),
			"their clients keep access; end them with qt kill")
	}
	say("%s", what)
	return nil
}

// What qt is doing when it installs, and what follows from where it put qtd.
const (
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
	return fmt.Sprintf("session %s on %s was %s, at %s", name, reach.Place(host), exit.Reason, at.Format(layout))
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
	if opts.Port != 0 {
		words = appendFlag(words, "-p", strconv.Itoa(int(opts.Port)))
	}
	words = appendFlag(words, "-l", opts.User)
	words = appendFlag(words, "--bootstrap", opts.Bootstrap)
	for _, file := range opts.Identities {
		words = appendFlag(words, "-i", file)
	}
	words = appendFlag(words, "-F", opts.Config)
	return strings.Join(append(words, args...), " ")
}

// appendFlag appends a flag unless its value is empty, quoted for a shell where that is needed.
func appendFlag(words []string, name, value string) []string {
	if value == "" {
		return words
	}
	return append(words, name, shellWord(value))
}
