package screen

// Pen returns how the next character looks.
func (s *Screen) Pen() Style { return s.pen }

// CursorHidden reports whether the program hides the cursor.
func (s *Screen) CursorHidden() bool { return s.modes&modeCursor == 0 }

// BracketedPaste reports whether the program asks for pastes to be marked.
func (s *Screen) BracketedPaste() bool { return s.modes&modePaste != 0 }

// Synchronized reports whether the program is in the middle of a synchronized update.
func (s *Screen) Synchronized() bool { return s.modes&modeSync != 0 }
