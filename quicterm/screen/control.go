package screen

import "github.com/quicterm/quicterm/quicterm/screen/vt"

// Execute obeys a control character.
func (h *handler) Execute(c byte) {
	s := (*Screen)(h)
	switch c {
	case '\b':
		s.backspace()
	case '\t':
		s.tab(1)
	case '\n', '\v', '\f':
		if s.modes&modeNewLine != 0 {
			s.x = 0
		}
		s.lineFeed()
	case '\r':
		s.x = s.lineStart()
		s.aligned()
	case 0x0e, 0x0f: // SO, SI
		s.charsets.level = 0x0f - int(c)
	case 0x84: // IND
		s.index()
	case 0x85: // NEL
		s.x = s.lineStart()
		s.index()
	case 0x88: // HTS
		s.setTab()
	case 0x8d: // RI
		s.reverseIndex()
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
		s.charsets.selectSet(int(intermediates-'('), final)
	case '-', '.':
		s.charsets.selectSet(int(intermediates-'-')+1, final)
	case '%':
		if final == '@' || final == 'G' {
			s.charsets.level, s.charsets.g[0] = 0, 0
		}
	case '#':
		if final == '8' {
			s.alignmentPattern()
		}
	}
}

func (s *Screen) escape(final byte) {
	switch final {
	case '7':
		s.saveCursor()
	case '8':
		s.restoreCursor()
		s.restored()
	case 'D':
		s.index()
	case 'E':
		s.x = s.lineStart()
		s.index()
	case 'H':
		s.setTab()
	case 'M':
		s.reverseIndex()
	case '=', '>':
		s.setModes(modeKeypad, final == '=')
	case '6':
		s.backIndex()
	case '9':
		s.forwardIndex()
	case 'V', 'W': // SPA, EPA
		s.protect(final == 'V')
	case 'c':
		s.reset()
	case 'n', '}':
		s.charsets.level = 2
	case 'o', '|':
		s.charsets.level = 3
	case '~':
		s.charsets.level = 1
	}
}

// Control obeys a CSI sequence.
func (h *handler) Control(c *vt.Control) {
	s := (*Screen)(h)
	switch {
	case c.Prefix == 0 && c.Intermediates == 0:
		s.control(c)
	case c.Prefix == '?' && c.Intermediates == 0:
		s.privateControl(c)
	case c.Prefix == 0:
		s.controlIntermediate(c)
	case c.Intermediates == 0:
		s.extension(c)
	}
	s.repeat = false
}

func (s *Screen) control(c *vt.Control) {
	n := c.Count(0)
	switch c.Final {
	case '@':
		s.insertCells(n)
	case 'A':
		s.moveUp(n)
	case 'B':
		s.moveDown(n)
	case 'C', 'a':
		s.moveBy(n, 0)
	case 'D':
		s.moveBy(-n, 0)
	case 'E':
		s.moveDown(n)
		s.x = s.lineStart()
	case 'F':
		s.moveUp(n)
		s.x = s.lineStart()
	case 'G', '`':
		s.moveToColumn(n - 1)
	case 'H', 'f':
		s.moveTo(c.Count(1)-1, n-1)
	case 'I':
		s.tab(n)
	case 'J':
		s.eraseDisplay(c.Param(0), false)
	case 'K':
		s.eraseLine(c.Param(0), false)
	case 'L':
		s.insertLines(n)
	case 'M':
		s.deleteLines(n)
	case 'P':
		s.deleteCells(n)
	case 'S':
		s.scrollRegion(n)
	case 'T':
		if c.Len() == 1 { // with more, it is highlight mouse tracking
			s.scrollDown(n)
		}
	case 'X':
		s.eraseCells(n)
	case 'Z':
		s.backTab(n)
	case 'b':
		s.repeatLast(n)
	case 'd':
		s.moveToRow(n - 1)
	case 'e':
		s.moving(n)
		s.moveBy(0, n)
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
		s.restoreCursor()
		s.restored()
	}
}

func (s *Screen) privateControl(c *vt.Control) {
	switch c.Final {
	case 'J':
		s.eraseDisplay(c.Param(0), true)
	case 'K':
		s.eraseLine(c.Param(0), true)
	case 'h', 'l', 's', 'r':
		for i := range c.Len() {
			if c.Sub(i) {
				continue
			}
			switch n := c.Value(i); c.Final {
			case 's':
				s.savePrivateMode(n)
			case 'r':
				s.restorePrivateMode(n)
			default:
				s.setPrivateMode(n, c.Final == 'h')
			}
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
	k := &s.buf.keyboard
	switch {
	case c.Final == 'u' && c.Prefix == '>':
		k.push(c.Param(0))
	case c.Final == 'u' && c.Prefix == '<':
		k.pop(c.Count(0))
	case c.Final == 'u' && c.Prefix == '=':
		k.set(c.Param(0), c.Param(1))
	case c.Final == 'm' && c.Prefix == '>':
		if p := c.Param(0); p == 4 || p == 0 {
			s.modifyKeys = min(c.Param(1), 3)
		}
	case c.Final == 'n' && c.Prefix == '>':
		if p := c.Param(0); p == 4 {
			s.modifyKeys = 0
		}
	}
}
