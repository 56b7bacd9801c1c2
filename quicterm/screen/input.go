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

// Reset brings a terminal of which nothing is known into its usual state, except for colours, tab stops and titles,
// with the cursor in the last row.
const Reset = "\x18\x1b[?2026l\x1b[?1049l\x1b[4l\x1b[20l\x1b[?5l\x1b[?6l\x1b[?7h\x1b[?69l\x1b[r\x1b[999;1H" +
	"\x1b[?25h\x1b[ q\x1b[m\x1b]8;;\x1b\\\x1b(B\x0f" + UsualInput
