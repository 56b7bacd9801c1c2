package screen

// mouseSGR is the form of mouse reports whose places are decimal numbers (xterm's SGR).
const mouseSGR = 1006

// InputModes returns output that makes a terminal in its usual state send for keys, pastes, its focus and
// its colours what the program wants, and mouse reports if the program wants those in the form of SGR.
func (s *Screen) InputModes() []byte {
	r := renderer{s: s}
	for _, m := range privateModes {
		switch m.mode & s.modes {
		case modeCursorKeys, modeFocus, modePaste, modeColorScheme:
			r.private(m.number, true)
		case modeKeypad:
			r.add("\x1b=")
		}
	}
	if s.modifyKeys != 0 {
		r.addf("\x1b[>4;%dm", s.modifyKeys)
	}
	if flags := s.buf.keyboard.flags; flags != 0 {
		r.addf("\x1b[=%du", flags)
	}
	if s.ReportsMouse() {
		r.private(s.mouse.tracking, true)
		r.private(mouseSGR, true)
	}
	return r.b
}

// UsualInput undoes any InputModes.
const UsualInput = "\x1b[?1l\x1b>\x1b[>4m\x1b[=0u\x1b[?1004l\x1b[?2004l\x1b[?2031l" +
	"\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l"

// ReportsMouse reports whether InputModes has the terminal report the mouse.
func (s *Screen) ReportsMouse() bool {
	return s.mouse.tracking != 0 && s.mouse.encoding == mouseSGR
}
