package screen

import (
	"slices"

	"github.com/quicterm/quicterm/quicterm/screen/charset"
)

// modes are the modes that are on.
type modes uint32

const (
	modeCursorKeys modes = 1 << iota
	modeReverse
	modeOrigin
	modeWrap
	modeBlink
	modeCursor
	modeReverseWrap
	modeKeypad
	modeMargins
	modeFocus
	modePaste
	modeSync
	modeColorScheme
	modeSizeReports
	modeInsert
	modeNewLine

	usualModes = modeWrap | modeCursor
)

// privateModes are DEC's private modes by their numbers.
var privateModes = []struct {
	number int
	mode   modes
}{
	{1, modeCursorKeys}, {5, modeReverse}, {6, modeOrigin}, {7, modeWrap}, {12, modeBlink},
	{25, modeCursor}, {45, modeReverseWrap}, {66, modeKeypad}, {69, modeMargins},
	{1004, modeFocus}, {2004, modePaste}, {2026, modeSync}, {2031, modeColorScheme}, {2048, modeSizeReports},
}

// A mouse is what the terminal reports of the mouse.
type mouse struct {
	tracking int // 9, 1000, 1002 or 1003, or 0
	encoding int // 1005, 1006, 1015 or 1016, or 0
}

// part returns what a private mode sets of the mouse, or nil.
func (m *mouse) part(number int) *int {
	switch number {
	case 9, 1000, 1002, 1003:
		return &m.tracking
	case 1005, 1006, 1015, 1016:
		return &m.encoding
	}
	return nil
}

// mouseModes are the private modes that set mouse.
var mouseModes = []int{9, 1000, 1002, 1003, 1005, 1006, 1015, 1016}

// changedModes are the private modes that a program has given unusual values, and no usual ones
// since. In some terminals they are on although Screen has them off: several kinds of mouse
// tracking are on at once there, DECSTR leaves modes on, or XTRESTORE, which Screen does not obey, sets them.
type changedModes struct {
	modes modes
	mouse uint8 // bits by the index in mouseModes
}

// alwaysReset are the modes that DECSTR resets in all terminals.
const alwaysReset = modeCursorKeys | modeOrigin | modeCursor | modeKeypad | modeMargins

// set records that a program has set or reset a mode.
func (c *changedModes) set(number int, on bool) {
	if i := slices.Index(mouseModes, number); i >= 0 {
		c.mouse &^= 1 << i
		if on {
			c.mouse |= 1 << i
		}
		return
	}
	mode := privateMode(number)
	c.modes &^= mode
	if on == (usualModes&mode == 0) {
		c.modes |= mode
	}
}

func privateMode(number int) modes {
	for _, m := range privateModes {
		if m.number == number {
			return m.mode
		}
	}
	return 0
}

func (s *Screen) setModes(m modes, on bool) {
	if on {
		s.modes |= m
	} else {
		s.modes &^= m
	}
}

// setMode is SM and RM.
func (s *Screen) setMode(number int, on bool) {
	switch number {
	case 4:
		s.setModes(modeInsert, on)
	case 20:
		s.setModes(modeNewLine, on)
	}
}

// setPrivateMode is DECSET and DECRST.
func (s *Screen) setPrivateMode(number int, on bool) {
	s.changed.set(number, on)
	if part := s.mouse.part(number); part != nil {
		*part = 0
		if on {
			*part = number
		}
		return
	}
	switch number {
	case 2:
		if on {
			s.charsets.G = [4]byte{}
		}
	case 47, 1047, 1048, 1049:
		s.setAlternate(number, on)
	default:
		s.setModes(privateMode(number), on)
	}
	switch number {
	case 6:
		s.moveTo(0, 0)
	case 69:
		s.resetColumns()
	}
}

// setAlternate shows the alternate or the main screen. 1049 saves and restores the cursor
// as well, and 1048 does only that.
func (s *Screen) setAlternate(number int, on bool) {
	if on {
		if number >= 1048 {
			s.saveCursor()
		}
		if number != 1048 && !s.Alternate() {
			if s.alt == nil {
				s.alt = newBuffer(s.cols, s.rows)
			}
			c := s.eraser()
			for y := range s.rows {
				r := s.alt.row(y)
				r.fill(c)
				r.wrapped, r.line = false, s.newLine()
			}
			s.alt.top, s.alt.bottom, s.alt.left, s.alt.right = 0, s.rows-1, 0, s.cols-1
			s.main.x, s.main.y = s.x, s.y
			s.buf, s.entered = s.alt, number
			s.alt.likeness = likeness{} // blank
			if l := s.main.likeness; l.level != same && (!l.placed || l.shifted) {
				s.alt.likeness = likeness{level: fromCursor, row: true, shifted: l.shifted, lowest: s.y}
				if s.pen.Bg != 0 {
					s.alt.likeness.level = different // rows that scroll in on the terminal may have none
				}
			}
		}
		return
	}
	from := s.buf
	if number != 1048 {
		s.buf = s.main
	}
	if number >= 1048 {
		s.restoreCursor()
	}
	switch {
	case number == 1049 && from == s.alt && s.entered == 1049: // the row of before, wherever it is
	case number >= 1048:
		s.restored()
	case from == s.alt && from != nil:
		s.stayed(from)
	}
}

// A keyboard is the state of kitty's keyboard flags on one screen.
type keyboard struct {
	flags int
	stack []int // flags below
}

const (
	maxKeyboards  = 16 // entries of the stack; the oldest one is lost
	keyboardFlags = 31 // those that the protocol defines
)

// unused reports whether it is as after a reset.
func (k *keyboard) unused() bool { return k.flags == 0 && len(k.stack) == 0 }

// base returns the flags below the stack.
func (k *keyboard) base() int {
	if len(k.stack) > 0 {
		return k.stack[0]
	}
	return k.flags
}

func (k *keyboard) push(flags int) {
	if len(k.stack) == maxKeyboards {
		k.stack = append(k.stack[:0], k.stack[1:]...)
	}
	k.stack = append(k.stack, k.flags)
	k.flags = flags & keyboardFlags
}

func (k *keyboard) pop(n int) {
	for range min(n, maxKeyboards) {
		k.flags = 0
		if top := len(k.stack) - 1; top >= 0 {
			k.flags, k.stack = k.stack[top], k.stack[:top]
		}
	}
}

func (k *keyboard) set(flags, how int) {
	flags &= keyboardFlags
	switch how {
	case 2:
		k.flags |= flags
	case 3:
		k.flags &^= flags
	default:
		k.flags = flags
	}
}

// resetColumns makes the scroll regions as wide as the screen.
func (s *Screen) resetColumns() {
	for _, b := range []*buffer{s.main, s.alt} {
		if b != nil {
			b.left, b.right = 0, s.cols-1
		}
	}
}

// softReset is DECSTR.
func (s *Screen) softReset() {
	s.modes = s.modes&(modeBlink|modeNewLine) | usualModes
	s.changed.modes &^= alwaysReset
	s.buf.top, s.buf.bottom = 0, s.rows-1
	s.resetColumns()
	s.setPen(Style{})
	s.charsets = charset.Sets{}
	s.buf.saved = cursor{}
}
