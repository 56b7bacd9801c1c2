//go:build linux || darwin

package terminal

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"github.com/creack/pty"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// A Dialog gives a program that may ask the user something, such as ssh, a terminal of its own,
// and relays between that and the user's:
//
//	program ▶ own terminal ▶ lines ▶ the caller
//	                       ▶ questions ▶ the user's terminal
//	program ◀ own terminal ◀ keys, while a question is open
//
// So what the program says and asks comes in its order, and printable. The signals of the user's terminal are for
// this process. What is typed while no question is open stays on the user's terminal.
type Dialog struct {
	tty           *TTY
	master, slave *os.File

	mu       sync.Mutex
	line     []byte // that has not ended
	shown    int    // how many bytes of it are on the user's terminal
	asked    bool   // the last line ended as a question does
	muted    bool
	stopKeys func() // nil unless a question is open
}

// maxQuestion bounds a line of the program in bytes.
const maxQuestion = 4 << 10

// NewDialog returns a dialog on the user's terminal, which it does not close.
func NewDialog(tty *TTY) (*Dialog, error) {
	master, slave, err := pty.Open()
	if err != nil {
		return nil, err
	}
	copyModes(slave, tty.in) // the user's own key erases a character
	return &Dialog{tty: tty, master: master, slave: slave}, nil
}

// Attach makes the terminal that of a command, and its standard error.
func (d *Dialog) Attach(cmd *exec.Cmd) {
	const stderr = 2
	cmd.Stderr = d.slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: stderr}
}

// Relay passes each line that the command says to hear, and whether it is on the user's terminal
// already, as questions are. When a question is shown, it passes an empty line. It returns when
// the command and all that it has started have ended, or at Close.
func (d *Dialog) Relay(hear func(line string, shown bool)) {
	d.slave.Close() // the command has its own by now
	b := make([]byte, maxQuestion)
	for {
		n, err := d.master.Read(b)
		for part := range bytes.Lines(b[:n]) {
			if line, shown := d.take(part); line != "" {
				hear(line, shown)
			}
		}
		if d.show() {
			hear("", true)
		}
		if err != nil {
			return
		}
	}
}

// take takes a part of a line. It returns a line that has ended.
func (d *Dialog) take(part []byte) (line string, shown bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	text, ended := bytes.CutSuffix(part, []byte("\n"))
	d.line = append(d.line, text[:min(len(text), maxQuestion-len(d.line))]...)
	if !ended {
		return "", false
	}
	line = wire.Printable(strings.TrimSpace(string(d.line)), maxQuestion)
	if d.shown > 0 || d.asked && line != "" && !d.muted { // the rest of the question, or the answer
		d.tty.Write(d.shownLocked(d.shown))
		d.shown = len(d.line)
	}
	shown = d.shown > 0
	d.endLocked()
	d.line = d.line[:0]
	d.asked = !shown && (strings.HasSuffix(line, ":") || strings.HasSuffix(line, "?"))
	return line, shown
}

// show shows a question that the program seems to ask, and the echo of the answer. It reports
// whether the question is a new one.
func (d *Dialog) show() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	open := len(bytes.TrimSpace(d.line)) > 0 || d.asked || hidesInput(d.master)
	if d.muted || !open {
		return false
	}
	isNew := d.stopKeys == nil
	if isNew {
		d.stopKeys = d.tty.keys(d.master, d.repeat) // before the user sees the question
	}
	d.tty.Write(d.shownLocked(d.shown))
	d.shown = len(d.line)
	return isNew
}

// shownLocked returns the line from a byte on, as it is shown. Only its user can erase a part.
func (d *Dialog) shownLocked(from int) []byte {
	parts := strings.Split(strings.Trim(string(d.line[from:]), "\r"), "\b")
	for i, part := range parts {
		parts[i] = wire.Printable(part, maxQuestion)
	}
	return []byte(strings.Join(parts, "\b"))
}

// repeat shows the question again, when another program has had the user's terminal.
func (d *Dialog) repeat() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tty.Write(d.shownLocked(0))
}

// endLocked ends a question, if one is open.
func (d *Dialog) endLocked() {
	if stop := d.stopKeys; stop != nil {
		d.stopKeys = nil
		d.mu.Unlock()
		stop() // repeat may run
		d.mu.Lock()
	}
	if d.shown > 0 {
		io.WriteString(d.tty, "\n")
		d.line, d.shown = d.line[:0], 0
	}
}

// Mute shows no question any more: the user's terminal is for something else.
func (d *Dialog) Mute() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.muted = true
	d.endLocked()
}

// Close ends a question that is open, and Relay.
func (d *Dialog) Close() error {
	d.Mute()
	d.slave.Close()
	return d.master.Close()
}
