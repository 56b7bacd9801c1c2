package terminal

import (
	"strings"

	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// maxUnread bounds the output in bytes that waits to be read: a flood is read in large parts, and a key behind it
// does not wait for long.
const maxUnread = 128 << 10

// A follower knows the state of a terminal from its output, which it reads when it is asked. It is not safe for
// concurrent use.
type follower struct {
	unread []byte
	screen *screen.Screen
}

// newFollower returns a follower of a terminal that was just reset.
func newFollower() *follower {
	return &follower{screen: newScreen(wire.Size{Cols: 80, Rows: 24})}
}

// newScreen returns the screen of a terminal. It keeps no scrollback.
func newScreen(size wire.Size) *screen.Screen {
	return screen.New(int(size.Cols), int(size.Rows), screen.Limits{Lines: 1})
}

// Write takes output that the terminal has got.
func (f *follower) Write(b []byte) (int, error) {
	f.unread = append(f.unread, b...)
	if len(f.unread) > maxUnread {
		f.now()
	}
	return len(b), nil
}

// now returns a screen that has read all output.
func (f *follower) now() *screen.Screen {
	if len(f.unread) > 0 {
		f.screen.Write(f.unread)
		f.unread = f.unread[:0]
		if cap(f.unread) > 2*maxUnread {
			f.unread = nil
		}
	}
	return f.screen
}

// onEmptyLine reports whether the cursor is at the start of a row that shows nothing.
func (f *follower) onEmptyLine() bool {
	s := f.now()
	x, y := s.Cursor()
	return x == 0 && strings.TrimSpace(s.Row(y).Text()) == ""
}

// reset makes the screen that of a terminal that was just reset.
func (f *follower) reset() {
	cols, rows := f.now().Size()
	f.screen = newScreen(wire.Size{Cols: uint16(cols), Rows: uint16(rows)})
}
