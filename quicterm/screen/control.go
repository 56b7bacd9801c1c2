package screen

import "github.com/quicterm/quicterm/quicterm/screen/vt"

// Execute obeys a control character.
func (h *handler) Execute(c byte) {
	s := (*Screen)(h)
	switch {
	case c == '\a':
		if s.listener != nil {
			s.listener.Bell()
		}
	case c == '\b':
		s.backspace()
	case c == '\t':
		s.tab(1)
	case c == '\n', c == '\v', c == '\f':
		if s.modes&modeNewLine != 0 {
			s.x = 0
		}
		s.lineFeed()
	case c == '\r':
		s.x = s.leftEdge()
		s.aligned()
	case c == 0x0e, c == 0x0f: // SO, SI
		s.charsets.Level = 0x0f - int(c)
	case c >= 0x80: // C1 stands for ESC and a byte
		s.escape(c - 0x40)
	}
	s.repeat = false
}

// Escape obeys an escape sequence.
func (h *handler) Escape(intermediates uint16, final byte) {
	s := (*Screen)(h)
	s.repeat = false
	switch intermediates {
	case 0:
		s.escape(final)
	case '(', ')', '*', '+':
		s.charsets.Select(int(intermediates-'('), final)
	case '-', '.':
		s.charsets.Select(int(intermediates-'-')+1, final)
	case '%':
		if final == '@' || final == 'G' {
			s.charsets.Level, s.charsets.G[0] = 0, 0
		}
	case '#':
		if final == '8' {
			s.alignmentPattern()
		}
	}
}

// escapes are the escape sequences by their final bytes.
var escapes = [128]func(*Screen){
	'6': (*Screen).backIndex,
	'7': (*Screen).saveCursor,
	'8': (*Screen).recallCursor,
	'9': (*Screen).forwardIndex,
	'=': func(s *Screen) { s.setModes(modeKeypad, true) },
	'>': func(s *Screen) { s.setModes(modeKeypad, false) },
	'D': (*Screen).index,
	'E': (*Screen).nextLine,
	'H': (*Screen).setTab,
	'M': (*Screen).reverseIndex,
	'V': func(s *Screen) { s.protect(true) },
	'W': func(s *Screen) { s.protect(false) },
	'c': (*Screen).reset,
	'n': func(s *Screen) { s.charsets.Level = 2 },
	'o': func(s *Screen) { s.charsets.Level = 3 },
	'|': func(s *Screen) { s.charsets.Level = 3 },
	'}': func(s *Screen) { s.charsets.Level = 2 },
	'~': func(s *Screen) { s.charsets.Level = 1 },
}

func (s *Screen) escape(final byte) {
	if f := escapes[final]; f != nil {
		f(s)
	}
}

// Control obeys a CSI sequence.
func (h *handler) Control(c *vt.Control) {
	s := (*Screen)(h)
	switch {
	case c.Prefix == 0 && c.Intermediates == 0:
		if f := counted[c.Final]; f != nil {
			f(s, c.Count(0))
		} else {
			s.control(c)
		}
	case c.Prefix == '?' && c.Intermediates == 0:
		s.privateControl(c)
	case c.Prefix == 0:
		s.controlIntermediate(c)
	case c.Intermediates == 0:
		s.extension(c)
	}
	s.repeat = false
}

// counted are the CSI sequences with one count, by their final bytes.
var counted = [128]func(s *Screen, n int){
	'@': (*Screen).insertCells,
	'A': (*Screen).moveUp,
	'B': (*Screen).moveDown,
	'C': (*Screen).moveRight,
	'D': (*Screen).moveLeft,
	'E': (*Screen).nextLines,
	'F': (*Screen).previousLines,
	'G': (*Screen).moveToColumn,
	'I': (*Screen).tab,
	'L': (*Screen).insertLines,
	'M': (*Screen).deleteLines,
	'P': (*Screen).deleteCells,
	'S': (*Screen).scrollRegion,
	'X': (*Screen).eraseCells,
	'Z': (*Screen).backTab,
	'`': (*Screen).moveToColumn,
	'a': (*Screen).moveRight,
	'b': (*Screen).repeatLast,
	'd': (*Screen).moveToRow,
	'e': (*Screen).moveRows,
}

func (s *Screen) control(c *vt.Control) {
	switch c.Final {
	case 'H', 'f':
		s.moveTo(c.Count(1)-1, c.Count(0)-1)
	case 'J':
		s.eraseDisplay(c.Param(0), false)
	case 'K':
		s.eraseLine(c.Param(0), false)
	case 'T':
		if c.Len() == 1 { // with more, it is highlight mouse tracking
			s.scrollDown(c.Count(0))
		}
	case 'c', 'n':
		s.query(c)
	case 'g':
		s.clearTabs(c.Param(0))
	case 'h', 'l':
		for i := range c.Len() {
			s.setMode(c.Param(i), c.Final == 'h')
		}
	case 'm':
		s.selectGraphics(c)
	case 'r':
		s.setRegion(c.Param(0), c.Param(1))
	case 's':
		if s.modes&modeMargins != 0 {
			s.setMargins(c.Param(0), c.Param(1))
		} else {
			s.saveCursor()
		}
	case 't':
		s.windowOperation(c.Param(0), c.Param(1))
	case 'u':
		s.recallCursor()
	}
}

func (s *Screen) privateControl(c *vt.Control) {
	switch c.Final {
	case 'J':
		s.eraseDisplay(c.Param(0), true)
	case 'K':
		s.eraseLine(c.Param(0), true)
	case 'h', 'l':
		for i := range c.Len() {
			if !c.Sub(i) {
				s.setPrivateMode(c.Value(i), c.Final == 'h')
			}
		}
	case 'r':
		for i := range c.Len() {
			s.changed.set(c.Value(i), usualModes&privateMode(c.Value(i)) == 0)
		}
	}
}

func (s *Screen) controlIntermediate(c *vt.Control) {
	n := c.Count(0)
	switch c.Intermediates<<8 | uint16(c.Final) {
	case ' '<<8 | '@':
		s.scrollLeft(n)
	case ' '<<8 | 'A':
		s.scrollRight(n)
	case ' '<<8 | 'q':
		if shape := c.Param(0); shape <= 6 {
			s.shape = shape
		}
	case '!'<<8 | 'p':
		s.softReset()
	case '"'<<8 | 'q':
		if p := c.Param(0); p <= 2 {
			s.protect(p == 1)
		}
	case '\''<<8 | '}':
		s.insertColumns(n)
	case '\''<<8 | '~':
		s.deleteColumns(n)
	}
}

// extension obeys kitty's and xterm's keyboard modes.
func (s *Screen) extension(c *vt.Control) {
	k, p := &s.buf.keyboard, c.Param(0)
	switch [2]byte{c.Prefix, c.Final} {
	case [2]byte{'>', 'u'}:
		k.push(p)
	case [2]byte{'<', 'u'}:
		k.pop(c.Count(0))
	case [2]byte{'=', 'u'}:
		k.set(p, c.Param(1))
	case [2]byte{'>', 'm'}:
		if p == 4 || p == 0 {
			s.modifyKeys = min(c.Param(1), 3)
		}
	case [2]byte{'>', 'n'}:
		if p == 4 {
			s.modifyKeys = 0
		}
	}
}
