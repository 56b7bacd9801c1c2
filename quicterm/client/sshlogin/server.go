package sshlogin

import (
	"errors"
	"strings"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// An Asker asks the user of this machine.
type Asker interface {
	// Ask shows a prompt, and returns the line that the user types. The line is shown only
	// if echo is set.
	Ask(prompt string, echo bool) (string, error)
	// Tell shows a line of text.
	Tell(line string)
}

const (
	// maxText bounds a line of a server, in bytes: a few lines of a terminal.
	maxText = 1024

	// maxLines bounds the lines that a server shows in a login: a long banner.
	maxLines = 100

	// maxQuestions bounds the questions of a server in a login: three times a password and a
	// second factor by keyboard-interactive, three times a password, and some more.
	maxQuestions = 16
)

var (
	errTooManyLines     = errors.New("the server says too much")
	errTooManyQuestions = errors.New("the server asks too much")
)

// A server speaks to the user, within bounds. Nothing is said before its key is accepted.
type server struct {
	asker Asker // or nil
	watch *watchdog
	name  string // user@host

	lines, questions int
	err              error // that ends the login
}

// tell shows text of the server: a banner, or what it says before it asks.
func (s *server) tell(text string) error {
	if s.asker == nil || text == "" {
		return nil
	}
	for line := range strings.Lines(text) {
		if s.lines++; s.lines > maxLines {
			s.err = errTooManyLines
			return s.err
		}
		s.asker.Tell(wire.Printable(strings.TrimRight(line, "\r\n"), maxText))
	}
	return nil
}

// ask asks the user, with the name of the server before the question.
func (s *server) ask(question string, echo bool) (answer string, err error) {
	if s.questions++; s.questions > maxQuestions {
		s.err = errTooManyQuestions
		return "", s.err
	}
	defer s.watch.pause()()
	answer, s.err = s.asker.Ask("("+s.name+") "+wire.Printable(question, maxText), echo)
	return answer, s.err
}

// challenge answers a round of keyboard-interactive.
func (s *server) challenge(name, instruction string, questions []string, echo []bool) ([]string, error) {
	if err := errors.Join(s.tell(name), s.tell(instruction)); err != nil {
		return nil, err
	}
	answers := make([]string, 0, min(len(questions), maxQuestions))
	for i, q := range questions {
		answer, err := s.ask(q, echo[i])
		if err != nil {
			return nil, err
		}
		answers = append(answers, answer)
	}
	return answers, nil
}
