package terminal

import (
	"bytes"
	"fmt"
	"os"

	"golang.org/x/term"

	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/screen/picture"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A Viewer shows output of no session, such as that of a recording, on a terminal. The output can
// do there what a program's can, except ask the terminal: nobody waits for the answers. Once the
// terminal that the output was for changes its size, that one's screen is drawn, or the part of it
// around the cursor. The methods are for one goroutine.
type Viewer struct {
	out     *os.File
	size    wire.Size
	display *display
	reset   func()
	keys    chan byte

	recorded wire.Size      // of the terminal that the output was for, at first
	screen   *screen.Screen // of that terminal
	clipped  func(size wire.Size, column, row int) string
	drawn    *window // draws the screen; nil as long as the output itself does
}

// NewViewer makes the terminal in raw until Close, and reads keys from it if it is one. A goroutine
// reads, and stays in Read until the next key: a Viewer is for programs that end after it. The output
// was for a terminal of a size; clipped says what part of it is drawn.
func NewViewer(
	in, out *os.File, recorded wire.Size, clipped func(size wire.Size, column, row int) string,
) (*Viewer, error) {
	v := &Viewer{
		out: out, size: windowSize(), reset: func() {}, keys: make(chan byte),
		recorded: recorded, clipped: clipped,
	}
	if fd := int(in.Fd()); term.IsTerminal(fd) {
		reset, err := makeRaw(fd)
		if err != nil {
			return nil, fmt.Errorf("terminal: %w", err)
		}
		v.reset = reset
		go v.readKeys(in)
	}
	v.begin()
	return v, nil
}

func (v *Viewer) begin() {
	v.beginDisplay()
	v.screen = screen.New(int(v.recorded.Cols), int(v.recorded.Rows), screen.Limits{})
	v.drawn = nil
}

func (v *Viewer) beginDisplay() {
	v.display = newDisplay(v.out, Config{})
	v.display.begin(v.size, true, nil)
}

// readKeys passes on keys that are one byte.
func (v *Viewer) readKeys(in *os.File) {
	var filter keyFilter
	buf := make([]byte, 4096)
	for {
		n, err := in.Read(buf)
		for _, c := range buf[:n] {
			if filter.isKey(c) {
				v.keys <- c
			}
		}
		if err != nil {
			close(v.keys)
			return
		}
	}
}

// Size returns the size of the window, as Terminal.Size does.
func (v *Viewer) Size() wire.Size { return v.size }

// Keys returns the keys that are typed, except those that are more than one byte. It is closed when
// the terminal is gone.
func (v *Viewer) Keys() <-chan byte { return v.keys }

// Write shows output.
func (v *Viewer) Write(b []byte) (int, error) {
	if v.drawn != nil {
		return v.drawn.Write(b)
	}
	v.screen.Write(b)
	return v.display.Write(b)
}

// Resize says that further output was for a terminal of another size.
func (v *Viewer) Resize(size wire.Size) {
	if v.drawn == nil && size == v.recorded {
		return
	}
	if v.drawn == nil {
		v.display.restore(false)
		v.beginDisplay()
		v.drawn = newWindow(v.display, v.size, v.screen, clippedBy(v.clipped))
	}
	v.drawn.resize(size)
}

// Clear puts the terminal into its usual state, and clears the screen.
func (v *Viewer) Clear() error {
	v.end(false)
	v.begin()
	_, err := v.out.WriteString("\x1b[H\x1b[2J")
	return err
}

func (v *Viewer) end(newLine bool) {
	if v.drawn != nil {
		v.drawn.stop()
	}
	v.display.restore(newLine)
}

// Close leaves the terminal as it was, with the cursor on an empty line. A main screen that was drawn
// stays there as text, as output does.
func (v *Viewer) Close() {
	v.end(true)
	if v.drawn != nil && !v.screen.Alternate() {
		var text bytes.Buffer
		picture.ANSI(&text, v.screen)
		v.out.Write(bytes.ReplaceAll(text.Bytes(), []byte("\n"), []byte("\r\n")))
	}
	v.reset()
}

// A keyFilter finds the keys that are one byte in what is typed, and leaves out arrows, keys with
// Alt, and the mouse.
type keyFilter struct {
	before byte // ESC, or '[' directly after it, or ';' later in that sequence; 0 for none
	skip   int  // further bytes of a sequence
}

func (f *keyFilter) isKey(c byte) bool {
	before := f.before
	f.before = 0
	switch {
	case f.skip > 0:
		f.skip--
	case before == '\x1b' && c == '[':
		f.before = '['
	case before == '\x1b' && c == 'O':
		f.skip = 1
	case before == '[' && c == 'M': // the mouse in its oldest form
		f.skip = 3
	case before == '[' || before == ';':
		if c < 0x40 || c > 0x7e {
			f.before = ';'
		}
	case c == '\x1b':
		f.before = c
	default:
		return before == 0
	}
	return false
}
