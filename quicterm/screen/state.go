package screen

// Pen returns how the next character looks.
func (s *Screen) Pen() Style { return s.pen }

// CursorHidden reports whether the program hides the cursor.
func (s *Screen) CursorHidden() bool { return s.modes&modeCursor == 0 }

// BracketedPaste reports whether the program asks for pastes to be marked.
func (s *Screen) BracketedPaste() bool { return s.modes&modePaste != 0 }

// Synchronized reports whether the program is in the middle of a synchronized update.
func (s *Screen) Synchronized() bool { return s.modes&modeSync != 0 }

// InputZone reports whether the shell's marks (OSC 133) say that the person edits a command now. Without
// any such mark known is false.
func (s *Screen) InputZone() (in, known bool) { return s.zone == 'B', s.zone != 0 }

// setZone obeys OSC 133: A begins a prompt, B the input, C the output of the command; D ends it.
func (s *Screen) setZone(mark string) {
	if mark != "" && mark[0] >= 'A' && mark[0] <= 'D' {
		s.zone = mark[0]
	}
}
