//go:build !js

package terminal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// A TTY is the terminal that a process belongs to, whatever its standard streams are:
// the place for questions to the user.
type TTY struct{ in, out *os.File } // may be the same file

func (t *TTY) Read(b []byte) (int, error)  { return t.in.Read(b) }
func (t *TTY) Write(b []byte) (int, error) { return t.out.Write(b) }

// ErrInterrupted is the error of a question that is answered by Ctrl-C.
var ErrInterrupted = errors.New("interrupted")

// ReadSecret asks for a line that is not shown. It returns io.EOF if none is typed, but Ctrl-D.
func (t *TTY) ReadSecret(prompt string) (string, error) {
	return t.ask(func(line *term.Terminal) (string, error) { return line.ReadPassword(prompt) })
}

// ReadLine asks for a line. It returns io.EOF if none is typed, but Ctrl-D.
func (t *TTY) ReadLine(prompt string) (string, error) {
	return t.ask(func(line *term.Terminal) (string, error) {
		line.SetPrompt(prompt)
		return line.ReadLine()
	})
}

func (t *TTY) ask(read func(*term.Terminal) (string, error)) (string, error) {
	restore, err := makeRaw(int(t.in.Fd())) // before the prompt: nothing typed after it may be shown
	if err != nil {
		return "", err
	}
	defer restore()
	keys := &interruptible{TTY: t}
	line := term.NewTerminal(keys, "")
	if cols, rows, err := term.GetSize(int(t.out.Fd())); err == nil && cols > 0 {
		line.SetSize(cols, rows)
	}
	text, err := read(line)
	if err != nil {
		fmt.Fprint(t, "\r\n") // what follows does not continue the question
	}
	if errors.Is(err, io.EOF) && keys.interrupted {
		err = ErrInterrupted
	}
	return text, err
}

// interruptible reports whether Ctrl-C was typed, which ends a [term.Terminal] as Ctrl-D does.
type interruptible struct {
	*TTY
	interrupted bool
}

func (t *interruptible) Read(b []byte) (int, error) {
	const ctrlC = 3
	n, err := t.TTY.Read(b)
	t.interrupted = t.interrupted || bytes.IndexByte(b[:n], ctrlC) >= 0
	return n, err
}

// Close closes the terminal's files.
func (t *TTY) Close() {
	t.in.Close()
	t.out.Close()
}

// windowSize returns the size of the first standard stream that is a terminal, or a usual size.
func windowSize() wire.Size {
	for _, f := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		if size, ok := terminalSize(f); ok {
			return size
		}
	}
	return wire.Size{Cols: 80, Rows: 24}
}
