package bootstrap

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
)

// A Dialog takes what ssh says on its standard error, and may be its terminal too: it then relays
// between that and the user's.
type Dialog interface {
	// Attach makes it the standard error of a command that is to start, and its terminal. A
	// command without one asks the user nothing, and gets no signals of the user's terminal.
	Attach(cmd *exec.Cmd)
	// Relay passes each line that the command says to hear, and whether the user sees it already,
	// as questions; when it shows a question, it passes an empty line. It blocks until the command
	// and all that it has started have ended, or until Close. It is called once.
	Relay(hear func(line string, shown bool))
	// Mute shows no question any more: the user's terminal is for something else. It may be called several times.
	Mute()
	// Close ends Relay.
	Close() error
}

// openErrors returns what takes the standard error of an ssh process.
func (s *SSH) openErrors(ask bool) (Dialog, error) {
	if ask && s.Dialog != nil {
		d, err := s.Dialog()
		if err == nil {
			return d, nil
		}
		s.Log.Debug("ssh has no terminal", "error", err)
	}
	return ErrorPipe()
}

// ErrorPipe returns a Dialog without a terminal: its command asks the user nothing.
func ErrorPipe() (Dialog, error) {
	r, w, err := os.Pipe()
	return &errorPipe{r, w}, err
}

// An errorPipe is the standard error of a command that has no terminal.
type errorPipe struct{ r, w *os.File }

func (p *errorPipe) Attach(cmd *exec.Cmd) {
	cmd.Stderr = p.w
	detach(cmd)
}

func (p *errorPipe) Relay(hear func(line string, shown bool)) {
	p.w.Close()
	lines := bufio.NewReader(p.r) // longer lines come in parts
	for {
		line, _, err := lines.ReadLine()
		if err != nil {
			return
		}
		if text := strings.TrimSpace(string(line)); text != "" {
			hear(text, false)
		}
	}
}

func (p *errorPipe) Mute() {}

func (p *errorPipe) Close() error {
	p.w.Close()
	return p.r.Close()
}
