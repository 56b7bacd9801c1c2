package bootstrap

import "github.com/quicterm/quicterm/quicterm/wire"

// LastWords hears what an ssh process says, for its user: it shows each line as far as that can be printed, because the
// host's are among them. It keeps those by which ssh says why it could not log in. One goroutine at a time may use it.
type LastWords struct {
	Show func(line string)

	kept []string
}

// Hear takes a line, and whether it is shown already, as [Dialog] has it.
func (l *LastWords) Hear(line string, shown bool) {
	line = wire.Printable(line, maxShown)
	switch {
	case !isLastWord(line):
		if !shown {
			l.Show(line)
		}
	case len(l.kept) < maxTail:
		l.kept = append(l.kept, line)
	}
}

// Err returns why ssh could not log in to a host, or nil if it has not said so.
func (l *LastWords) Err(host string) error {
	if len(l.kept) == 0 {
		return nil
	}
	return loginError(host, l.kept)
}
