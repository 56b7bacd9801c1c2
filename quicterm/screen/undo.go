package screen

import (
	"maps"
	"slices"
	"strings"

	"github.com/quicterm/quicterm/quicterm/screen/charset"
)

// Undo returns output that brings a terminal that has shown all of the program's output back to its
// usual state, or nil if it is in that state: it ends an unfinished control sequence, leaves the alternate
// screen, and resets modes, scroll region, cursor, pen, colours, character sets, tab stops, keyboard,
// mouse and title stack. The cursor ends where it was when the alternate screen was entered or, after a
// program that drew on the main screen by rows, in the last row. Text stays, and so does the title.
//
// It asks nothing of the position on the terminal, which may have had text before.
func (s *Screen) Undo() []byte {
	u := undoer{renderer{s: s}}
	u.addIf(!s.Ground(), "\x18") // CAN
	u.private(2026)
	if s.Alternate() {
		u.keyboard(s.alt.keyboard) // terminals have flags for each screen
		u.addf("\x1b[?%dl", s.entered)
	}
	u.addIf(s.modes&modeInsert != 0, "\x1b[4l")
	u.addIf(s.modes&modeNewLine != 0, "\x1b[20l")
	u.private(5, 6, 7, 69)
	u.position()
	u.private(25, 12)
	u.addIf(s.shape != 0, "\x1b[ q")
	u.pen()
	for _, key := range slices.Sorted(maps.Keys(s.colors)) {
		u.addf("\x1b]1%s\x1b\\", resetOf(key))
	}
	u.charsets()
	u.tabs()
	u.private(1, 45, 66)
	u.addIf(s.modifyKeys != 0, "\x1b[>4m")
	u.keyboard(s.main.keyboard)
	for i, number := range mouseModes {
		if s.changed.mouse&(1<<i) != 0 || number == s.mouse.tracking || number == s.mouse.encoding {
			u.addf("\x1b[?%dl", number)
		}
	}
	u.private(1004, 2004, 2031, 2048)
	for _, t := range slices.Backward(s.titles) {
		u.addf("\x1b[23;%dt", t.which)
	}
	return u.b
}

// resetOf returns the number of the OSC that resets a colour, without the 1 that it begins with.
func resetOf(key string) string {
	if strings.HasPrefix(key, "4;") {
		return "0" + key
	}
	return key
}

// An undoer writes that output.
type undoer struct{ renderer }

func (u *undoer) addIf(changed bool, sequence string) {
	if changed {
		u.add(sequence)
	}
}

func (u *undoer) private(numbers ...int) {
	for _, number := range numbers {
		mode := privateMode(number)
		switch {
		case (u.s.modes^usualModes|u.s.changed.modes)&mode == 0:
		case mode == modeKeypad:
			u.add("\x1b>")
		case usualModes&mode == 0:
			u.addf("\x1b[?%dl", number)
		default:
			u.addf("\x1b[?%dh", number)
		}
	}
}

// position resets the scroll region, and moves the cursor to the last row if something has moved it to the first one.
func (u *undoer) position() {
	s := u.s
	moved := s.modes&(modeOrigin|modeMargins) != 0
	restored := s.Alternate() && s.entered == 1049 && !moved
	region := !s.main.whole(s.cols) || !s.buf.whole(s.cols)
	switch {
	case region && restored:
		u.add("\x1b7\x1b[r\x1b8") // DECSTBM moves the cursor
	case region:
		u.add("\x1b[r\x1b[999;1H")
	case !restored:
		u.addIf(s.Alternate() || moved, "\x1b[999;1H")
	}
}

// pen resets how the next characters look. Leaving the alternate screen restores the pen of before.
func (u *undoer) pen() {
	pen, saved := u.s.pen, Style{}
	link := pen.Link
	pen.Link = 0
	if u.s.Alternate() {
		saved = u.s.main.saved.pen
	}
	u.addIf(pen != Style{} || u.s.Alternate(), "\x1b[m")
	u.addIf((pen.Attributes|saved.Attributes)&Protected != 0, "\x1b[\"q") // is not reset by SGR 0 everywhere
	u.addIf(link != 0, "\x1b]8;;\x1b\\")
}

// charsets makes G0 to G3 ASCII. Leaving the alternate screen restores those of before.
func (u *undoer) charsets() {
	now, saved := u.s.charsets, charset.Sets{}
	if u.s.Alternate() {
		saved = u.s.main.saved.charsets
	}
	for i, intermediate := range "()*+" {
		if now.G[i] != 0 || saved.G[i] != 0 {
			u.addf("\x1b%cB", intermediate)
		}
	}
	u.addIf(now != charset.Sets{} || saved != charset.Sets{}, "\x0f")
}

func (u *undoer) tabs() {
	if usual := defaultTabs(u.s.cols); !slices.Equal(u.s.tabs, usual) {
		u.add("\x1b7")
		u.moveTabs(u.s.tabs, usual)
		u.add("\x1b8")
	}
}

func (u *undoer) keyboard(k keyboard) {
	if n := len(k.stack); n > 0 {
		u.addf("\x1b[<%du", n)
	}
	u.addIf(k.base() != 0, "\x1b[=0u")
}
