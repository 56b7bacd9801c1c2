package reach

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/client/sshconfig"
	"github.com/quicterm/quicterm/quicterm/terminal"
)

// acceptable returns the server and the key that the user may accept after an error of connecting, or no key.
func acceptable(err error) (host string, key ssh.PublicKey) {
	var unknown *auth.UnknownHostError
	var changed *auth.ChangedHostError
	switch {
	case errors.As(err, &unknown):
		return unknown.Host, unknown.Key
	case errors.As(err, &changed) && changed.OfSSH:
		return changed.Host, changed.Key
	}
	return "", nil
}

// decideHost decides whether to connect to a server again whose key was not accepted: it asks the user, or does what
// StrictHostKeyChecking says. Without an error, the key is accepted. Other errors are returned as they are.
func decideHost(t *Target, err error) error {
	var unknown *auth.UnknownHostError
	var changed *auth.ChangedHostError
	switch {
	case errors.As(err, &changed):
		warnChanged(changed)
		if !changed.OfSSH || t.Unknown != sshconfig.Ask {
			return err
		}
		return orDeclined(err, Ask(otherKeyQuestion, func(answer string) bool {
			return answer == ssh.FingerprintSHA256(changed.Key)
		}))
	case !errors.As(err, &unknown):
		return err
	case t.Unknown == sshconfig.Accept:
		return nil
	case t.Unknown == sshconfig.Refuse:
		return err
	}
	fingerprint := ssh.FingerprintSHA256(unknown.Key)
	question := fmt.Sprintf(unknownHostQuestion, unknown.Host, unknown.Key.Type(), fingerprint)
	return orDeclined(err, Ask(question, func(answer string) bool {
		return strings.EqualFold(answer, "yes") || answer == fingerprint
	}))
}

// orDeclined returns what follows from asking the user after an error: that error if nobody could be asked.
func orDeclined(err, asked error) error {
	if asked != nil && !errors.Is(asked, errKeyDeclined) && !errors.As(asked, new(*SignalError)) {
		return err
	}
	return asked
}

// Ask repeats a question until the answer is accepted or "no". Its error is errKeyDeclined if the answer is
// no, or another one if there is no terminal to ask on.
func Ask(question string, accept func(answer string) bool) error {
	tty, err := terminal.OpenTTY()
	if err != nil {
		return err
	}
	defer tty.Close()
	last := strings.LastIndexByte(question, '\n') + 1
	for {
		fmt.Fprint(tty, question[:last])
		answer, err := tty.ReadLine(question[last:])
		switch answer = strings.TrimSpace(answer); {
		case err != nil:
			return unanswered(err, errKeyDeclined)
		case accept(answer):
			return nil
		case Declines(answer):
			return errKeyDeclined
		}
	}
}

// Declines reports whether an answer is no.
func Declines(answer string) bool {
	return strings.EqualFold(answer, "no") || strings.EqualFold(answer, "n")
}

// keepHost adds an accepted key to the user's first known_hosts file, or says that it could not.
func keepHost(t *Target, host string, key ssh.PublicKey) {
	if len(t.KnownHosts) == 0 {
		Say(keyNotKept, host, errors.New("UserKnownHostsFile is none"))
		return
	}
	file := t.KnownHosts[0]
	if err := auth.AddKnownHost(file, host, key, t.HashKnownHosts); err != nil {
		Say(keyNotKept, host, err)
	} else if known, err := t.LoadKnownHosts(); err != nil || known.Check(key) != nil {
		Say(keyNotFound, host, file)
	} else if t.Unknown == sshconfig.Accept {
		Say(keyAdded, host, key.Type(), ssh.FingerprintSHA256(key), file)
	}
}
