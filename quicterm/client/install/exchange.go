package install

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// loginTimeout bounds the time to the first answer. Within sshd's default of
	// LoginGraceTime, 2 minutes, the user types secrets.
	loginTimeout = 150 * time.Second

	// idleTimeout bounds how long the host may neither answer nor take a chunk of the
	// program. A chunk takes 10 s at 64 kbit/s.
	idleTimeout = time.Minute
	chunk       = 64 << 10

	// maxNoise bounds what a login may print beside the script's lines, in bytes. A motd has a few KiB.
	maxNoise = 1 << 20

	// maxText bounds each text of the host in bytes: a path, or a message of a program.
	maxText = 300
)

// ErrLogin means that ssh could not log in, or lost the connection.
var ErrLogin = errors.New("ssh could not log in, or lost the connection")

// An exchange is with a script that runs on the host.
type exchange struct {
	process  *Process
	out      *bufio.Reader
	noise    int    // bytes
	last     string // line that is not the script's
	answered bool   // by the script
	watchdog *time.Timer
	expired  atomic.Bool
}

// begin sends a process the script. The first answer has to come within timeout.
func begin(p *Process, script string, timeout time.Duration) *exchange {
	e := &exchange{process: p, out: bufio.NewReader(p)}
	e.watchdog = time.AfterFunc(timeout, func() {
		e.expired.Store(true)
		p.Close()
	})
	io.WriteString(p, script+"\n") // after an error, the output says more
	return e
}

// end waits until the login has ended, and returns its exit status.
func (e *exchange) end() int {
	e.process.CloseWrite()
	io.Copy(io.Discard, e.out)
	e.watchdog.Stop()
	status := e.process.ExitStatus()
	e.process.Close()
	return status
}

// next returns the key and the text of the script's next line.
func (e *exchange) next() (key, text string, err error) {
	for {
		line, err := e.line()
		if err != nil {
			return "", "", e.why()
		}
		if strings.Contains(line, echo) {
			return "", "", errors.New("the login does not run sh: a forced command returns its input")
		}
		_, line, ok := strings.Cut(line, mark)
		if !ok {
			continue
		}
		e.answered = true
		e.watchdog.Reset(idleTimeout)
		key, text, _ = strings.Cut(strings.TrimSpace(line), " ")
		if key == "failed" {
			return "", "", errors.New(wire.Printable(text, maxText))
		}
		return key, text, nil
	}
}

// line returns the start of the next line, printable.
func (e *exchange) line() (string, error) {
	var line []byte
	for {
		b, more, err := e.out.ReadLine()
		if err != nil {
			return "", err
		}
		if e.noise += len(b); e.noise > maxNoise {
			return "", errors.New("too much output")
		}
		line = append(line, b[:min(len(b), 2*maxText-len(line))]...)
		if !more {
			break
		}
	}
	text := wire.Printable(string(line), 2*maxText)
	if !strings.Contains(text, mark) && strings.TrimSpace(text) != "" {
		e.last = wire.Printable(strings.TrimSpace(text), maxText)
	}
	return text, nil
}

// send sends a program that says that it is of a version, and the end of the input. What fails is in the output.
func (e *exchange) send(b *Binary, version string) {
	fmt.Fprintf(e.process, "%d %s %s\n", len(b.Content), b.sum(), version)
	for rest := b.Content; len(rest) > 0; {
		n := min(len(rest), chunk)
		if _, err := e.process.Write(rest[:n]); err != nil {
			break
		}
		rest = rest[n:]
		e.watchdog.Reset(idleTimeout)
	}
	e.process.CloseWrite()
}

// why returns why the script's output ended too early.
func (e *exchange) why() error {
	if e.noise > maxNoise {
		e.process.Close()
		return fmt.Errorf("the login prints without end, and does not run sh: %q", e.last)
	}
	status := e.end()
	const failedSSH, notFound = 255, 127 // exit statuses of ssh, and of shells
	switch {
	case e.expired.Load() && e.answered:
		return errors.New("the host does not answer any more")
	case e.expired.Load():
		return errors.New("the login neither runs sh nor ends")
	case status == failedSSH:
		return ErrLogin
	case e.answered:
		return errors.New("the host ended the login before all was done")
	case status == notFound:
		return errors.New("the login shell finds no sh there")
	case e.last != "":
		return fmt.Errorf("the login does not run sh, but prints %q", e.last)
	}
	return fmt.Errorf("the login does not run sh, and ends with status %d", status)
}
