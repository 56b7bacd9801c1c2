//go:build linux || darwin

package holder

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/quicterm/holder/persist"
	"github.com/quicterm/quicterm/quicterm/machine/pam"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A revival is the program of a session that was lost: it asks on the terminal whether to start
// the session's command again, and is that command from then on.
type revival struct {
	launch  *wire.Launch // of the command
	login   *pam.Session // in which it is started, or nil
	started func()       // called when the command was started

	mu      sync.Mutex
	changed sync.Cond
	size    wire.Size
	queue   []byte // to be printed before what the command prints
	printed uint64 // bytes of it that Reads have returned
	line    answerLine
	over    bool // the answer is no, or there is nothing to ask
	status  byte
	closed  bool
	command Program // nil if it was not started
}

func newRevival(launch *wire.Launch, login *pam.Session) *revival {
	r := &revival{launch: launch, login: login, size: launch.Size}
	r.changed.L = &r.mu
	return r
}

// ask prints what the session was and the question, or starts the command at once.
func (r *revival) ask(f *persist.Facts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen, why := time.Unix(f.Seen, 0).Format("2006-01-02 15:04:05 MST"), lostReason(f, r.launch.ID)
	if f.Exited && f.Reason == "" {
		r.printLocked("\r\n[The program had ended when the session was last seen, %s. Then %s.]\r\n", seen, why)
		r.endLocked(f.Status)
		return
	}
	r.printLocked("\r\n[The session was lost after %s: %s. Above is what it showed last.]\r\n", seen, why)
	if r.launch.Persist.Unasked {
		r.startLocked()
		return
	}
	r.printLocked("Start %s again in %s? [y/N] ",
		wire.Printable(r.launch.Command, wire.MaxSummary), wire.Printable(r.launch.Dir, wire.MaxSummary))
}

func (r *revival) printLocked(format string, args ...any) {
	r.queue = fmt.Appendf(r.queue, format, args...)
	r.changed.Broadcast()
}

func (r *revival) endLocked(status byte) {
	if r.login != nil {
		r.login.Close()
	}
	r.over, r.status = true, status
	r.changed.Broadcast()
}

func (r *revival) startLocked() {
	launch := *r.launch
	launch.Size = r.size
	p, err := startProgram(&launch, r.login)
	if err != nil {
		r.printLocked("%v\r\n", err)
		r.endLocked(255)
		return
	}
	r.command = p
	r.changed.Broadcast()
	go r.started() // it waits for the holder's gate, whose owner may wait for us
}

// running returns the command, or nil.
func (r *revival) running() Program {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.command
}

func (r *revival) Terminal() bool        { return true }
func (r *revival) Stdin() io.WriteCloser { return revivalInput{r} }
func (r *revival) Stdout() io.ReadCloser { return revivalOutput{r} }
func (r *revival) Stderr() io.ReadCloser { return nil }

func (r *revival) Drained(n uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.command != nil {
		return r.command.Drained(n - r.printed)
	}
	return len(r.queue) == 0
}

func (r *revival) Modes(now time.Time) (flags wire.TerminalFlags, context uint16, ok bool) {
	if p := r.running(); p != nil {
		return p.Modes(now)
	}
	return 0, 0, false
}

func (r *revival) Resize(s wire.Size) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.size = s
	if r.command != nil {
		return r.command.Resize(s)
	}
	return nil
}

func (r *revival) Size() wire.Size {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.size
}

// Directory returns the working directory of the command.
func (r *revival) Directory() string {
	if p, ok := r.running().(placed); ok {
		return p.Directory()
	}
	return ""
}

func (r *revival) Signal(sig syscall.Signal) {
	if p := r.running(); p != nil {
		p.Signal(sig)
	}
}

func (r *revival) Hangup(sig syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.command != nil {
		r.command.Hangup(sig)
	} else if !r.over {
		r.endLocked(0)
	}
}

func (r *revival) Wait() (status byte, killed syscall.Signal) {
	r.mu.Lock()
	for r.command == nil && !r.over && !r.closed {
		r.changed.Wait()
	}
	p, status := r.command, r.status
	r.mu.Unlock()
	if p != nil {
		return p.Wait()
	}
	return status, 0
}

func (r *revival) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.changed.Broadcast()
	if r.command != nil {
		r.command.Close()
	}
}

type revivalOutput struct{ *revival }

// Read returns what is printed before the command, and then what the command prints.
func (r revivalOutput) Read(b []byte) (int, error) {
	r.mu.Lock()
	for len(r.queue) == 0 && r.command == nil && !r.over && !r.closed {
		r.changed.Wait()
	}
	if n := copy(b, r.queue); n > 0 {
		r.queue = r.queue[n:]
		r.printed += uint64(n)
		r.mu.Unlock()
		return n, nil
	}
	p := r.command
	r.mu.Unlock()
	if p == nil {
		return 0, io.EOF
	}
	return p.Stdout().Read(b)
}

func (r revivalOutput) Close() error {
	r.revival.Close()
	return nil
}

type revivalInput struct{ *revival }

// Write takes the answer, and then what the command is to get.
func (r revivalInput) Write(b []byte) (int, error) {
	r.mu.Lock()
	p, rest := r.command, b
	if p == nil && !r.over {
		var echo string
		var answered, yes bool
		echo, rest, answered, yes = r.line.write(b)
		r.printLocked("%s", echo)
		switch {
		case yes:
			r.startLocked()
			p = r.command
		case answered:
			r.printLocked("The record stays: qt attach shows it again, qt kill removes it.\r\n")
			r.endLocked(0)
		}
	}
	r.mu.Unlock()
	if p != nil && len(rest) > 0 { // part of it may be typed ahead
		n, err := p.Stdin().Write(rest)
		return len(b) - len(rest) + n, err
	}
	return len(b), nil
}

func (r revivalInput) Close() error { return nil }

// An answerLine is a line that is typed. A terminal may also send answers to what the lost program has
// asked, which begin with ESC and may end with a letter: nothing of them counts.
type answerLine struct {
	text   string
	escape byte // what a control sequence has begun with, or 0
}

// write takes what is typed up to the line's end. It returns what to show of it, and what was typed behind that end.
func (l *answerLine) write(b []byte) (echo string, rest []byte, answered, yes bool) {
	for i, c := range b {
		switch {
		case l.escape != 0:
			l.inEscape(c)
		case c == 0x1b:
			l.escape = c
		case c == '\r' || c == '\n':
			text := strings.ToLower(l.text)
			return echo + "\r\n", b[i+1:], true, text == "y" || text == "yes"
		case c == 3 || c == 4: // ^C, ^D
			return echo + "\r\n", b[i+1:], true, false
		case (c == 0x7f || c == 8) && l.text != "":
			l.text = l.text[:len(l.text)-1]
			echo += "\b \b"
		case c > ' ' && c < 0x7f && len(l.text) < 20:
			l.text += string(c)
			echo += string(c)
		}
	}
	return echo, nil, false, false
}

// inEscape takes a byte of a control sequence.
func (l *answerLine) inEscape(c byte) {
	switch l.escape {
	case 0x1b:
		switch c {
		case '[', 'O':
			l.escape = '['
		case ']', 'P', '_', '^', 'X':
			l.escape = ']'
		default:
			l.escape = 0
		}
	case '[':
		if c >= 0x40 && c <= 0x7e {
			l.escape = 0
		}
	case ']': // up to BEL or ST
		if c == 7 {
			l.escape = 0
		} else if c == 0x1b {
			l.escape = 0x1b
		}
	}
}
