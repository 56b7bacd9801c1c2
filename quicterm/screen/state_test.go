package screen

import "testing"

func TestStateFollowsTheProgram(t *testing.T) {
	s := New(20, 3, Limits{})
	state := func() [5]bool {
		in, _ := s.InputZone()
		return [5]bool{s.CursorHidden(), s.mouse.tracking != 0, s.BracketedPaste(), s.Synchronized(), in}
	}
	if _, known := s.InputZone(); known || state() != [5]bool{} {
		t.Errorf("a new screen has the state %v", state())
	}
	s.Write([]byte("\x1b[?25l\x1b[?1002h\x1b[?2004h\x1b[?2026h\x1b]133;A\x1b\\$ \x1b]133;B;k=v\a"))
	if state() != [5]bool{true, true, true, true, true} {
		t.Errorf("after all are on: %v", state())
	}
	s.Write([]byte("\x1b[?25h\x1b[?1002l\x1b[?2004l\x1b[?2026l\x1b]133;C\a"))
	if _, known := s.InputZone(); !known || state() != [5]bool{} {
		t.Errorf("after all are off: %v, marks known %v", state(), known)
	}
	s.Write([]byte("\x1b[1;31m"))
	if want := (Style{Fg: Palette(1), Attributes: Bold}); s.Pen() != want {
		t.Errorf("the pen is %v, want %v", s.Pen(), want)
	}
	s.Write([]byte("\x1bc"))
	if _, known := s.InputZone(); known {
		t.Error("marks are known after a reset")
	}
}
