package screen

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/quicterm/quicterm/quicterm/screen/charset"
)

// A Snapshot says what Screen.Snapshot renders.
type Snapshot struct {
	Lines int // rows of the scrollback, the newest ones

	// Bytes bounds the result, 0 for no bound. Rows of the scrollback are left out until it fits. If the
	// screen alone does not fit, there is no snapshot.
	Bytes int
}

// Snapshot returns output that brings a terminal of the same size, just after its reset, to the
// state of s: the scrollback, both screens, the cursor, the pen, modes, margins, tab stops, titles and
// colours, then the bytes of an unfinished control sequence or character, so that the program's further
// output can follow. What is as after a reset takes no bytes.
//
// The terminal cannot be told of everything: line ids, and that the first row continues one that is not in the
// snapshot. A blank with attributes but a background becomes a space. Of an alternate screen that is hidden, there is
// only the saved cursor and the keyboard: the rest is lost anyway when it is shown again.
func (s *Screen) Snapshot(o Snapshot) []byte {
	for lines := min(max(o.Lines, 0), s.history.lines); ; lines /= 2 {
		r := renderer{s: s, limit: o.Bytes, b: []byte{}}
		r.snapshot(lines)
		switch {
		case o.Bytes <= 0 || len(r.b) <= o.Bytes:
			return r.b
		case lines == 0:
			return nil
		}
	}
}

// A renderer writes output for a terminal, of which it knows the state.
type renderer struct {
	s     *Screen
	b     []byte
	limit int // of b; rows beyond it need not be rendered

	pen      Style
	charsets charset.Sets
}

func (r *renderer) snapshot(lines int) {
	s := r.s
	r.hidden()
	r.rows(s.main, lines)
	r.input()
	r.private(69, s.modes&modeMargins != 0)
	if s.Alternate() {
		r.margins(s.main)
		r.keyboard(s.main.keyboard)
		r.saved(s.main.saved)
		if s.entered != 1049 { // which saves the cursor
			r.add("\x1b7")
			r.moveTo(min(s.main.x, s.cols-1), s.main.y)
		}
		r.private(s.entered, true)
		bg := r.pen.Bg
		r.style(Style{})
		if bg != 0 {
			r.add("\x1b[2J")
		}
		r.moveTo(0, 0)
		r.rows(s.alt, 0)
	}
	if !s.buf.saved.initial() {
		r.saved(s.buf.saved)
		r.add("\x1b7")
	}
	r.moveTabs(defaultTabs(s.cols), s.tabs)
	r.margins(s.buf)
	r.keyboard(s.buf.keyboard)
	r.titles()
	r.modes()
	r.cursor()
	r.continuation()
}

// hidden sets what the alternate screen keeps while it is hidden. All else is as after a reset.
func (r *renderer) hidden() {
	alt := r.s.alt
	if r.s.Alternate() || alt == nil || alt.saved.initial() && alt.keyboard.unused() {
		return
	}
	r.add("\x1b[?47h")
	r.keyboard(alt.keyboard)
	if !alt.saved.initial() {
		r.saved(alt.saved)
		r.add("\x1b7")
		r.style(Style{})
		r.selectCharsets(charset.Sets{})
		r.moveTo(0, 0)
	}
	r.add("\x1b[?47l")
}

func (r *renderer) add(sequence string) { r.b = append(r.b, sequence...) }

func (r *renderer) addf(format string, args ...any) { r.b = fmt.Appendf(r.b, format, args...) }

func (r *renderer) moveTo(x, y int) {
	switch {
	case x == 0 && y == 0:
		r.add("\x1b[H")
	case x == 0:
		r.addf("\x1b[%dH", y+1)
	default:
		r.addf("\x1b[%d;%dH", y+1, x+1)
	}
}

func (r *renderer) right(n int) {
	switch {
	case n == 1:
		r.add("\x1b[C")
	case n > 1:
		r.addf("\x1b[%dC", n)
	}
}

// private sets a private mode whose usual value is off.
func (r *renderer) private(number int, on bool) {
	if on {
		r.addf("\x1b[?%dh", number)
	}
}

// initial reports whether the saved cursor is that after a reset.
func (c cursor) initial() bool {
	c.unlike, c.shifted = false, false
	return c == (cursor{})
}

// saved moves the cursor where DECSC saved it, with the pen and the character sets that it had.
func (r *renderer) saved(c cursor) {
	r.moveTo(min(c.x, r.s.cols-1), min(c.y, r.s.rows-1))
	r.style(c.pen)
	r.selectCharsets(c.charsets)
}

func (r *renderer) selectCharsets(to charset.Sets) {
	for i := range to.G {
		if to.G[i] != r.charsets.G[i] {
			final := to.G[i]
			if final == 0 {
				final = 'B'
			}
			r.b = append(r.b, '\x1b', "()*+"[i], final)
		}
	}
	if to.Level != r.charsets.Level {
		r.add([]string{"\x0f", "\x0e", "\x1bn", "\x1bo"}[to.Level])
	}
	r.charsets = to
}

// margins sets the scroll region, which moves the cursor.
func (r *renderer) margins(b *buffer) {
	if b.top > 0 || b.bottom < r.s.rows-1 {
		r.addf("\x1b[%d;%dr", b.top+1, b.bottom+1)
	}
	if b.left > 0 || b.right < r.s.cols-1 {
		r.addf("\x1b[%d;%ds", b.left+1, b.right+1)
	}
}

func (r *renderer) keyboard(k keyboard) {
	if base := k.base(); base != 0 {
		r.addf("\x1b[=%du", base)
	}
	for i := range k.stack {
		flags := k.flags
		if i+1 < len(k.stack) {
			flags = k.stack[i+1]
		}
		r.addf("\x1b[>%du", flags)
	}
}

// moveTabs sets and clears tab stops, which moves the cursor.
func (r *renderer) moveTabs(from, to []bool) {
	if slices.Equal(from, to) {
		return
	}
	if !slices.Contains(to, true) {
		r.add("\x1b[3g")
		return
	}
	for x, stop := range to {
		if stop == from[x] {
			continue
		}
		r.addf("\x1b[%dG", x+1)
		if stop {
			r.add("\x1bH")
		} else {
			r.add("\x1b[g")
		}
	}
}

func (r *renderer) titles() {
	s := r.s
	title := ""
	set := func(to string) {
		if to != title {
			r.addf("\x1b]2;%s\x1b\\", to)
			title = to
		}
	}
	for _, t := range s.titles {
		if t.which != 1 {
			set(t.title)
		}
		r.addf("\x1b[22;%dt", t.which)
	}
	set(s.title)
	if s.directory != "" {
		r.addf("\x1b]7;%s\x1b\\", s.directory)
	}
}

// modes sets the modes, except insert mode and what cursor sets.
func (r *renderer) modes() {
	s := r.s
	for _, key := range slices.Sorted(maps.Keys(s.colors)) {
		r.addf("\x1b]%s;%s\x1b\\", key, s.colors[key])
	}
	if s.shape != 0 {
		r.addf("\x1b[%d q", s.shape)
	}
	if s.modifyKeys != 0 {
		r.addf("\x1b[>4;%dm", s.modifyKeys)
	}
	if s.modes&modeNewLine != 0 {
		r.add("\x1b[20h")
	}
	for _, m := range privateModes {
		switch on := s.modes&m.mode != 0; {
		case m.mode == modeMargins || m.mode == modeOrigin: // are set in their places
		case on == (usualModes&m.mode != 0):
		case m.mode == modeKeypad:
			r.add("\x1b=")
		case on:
			r.addf("\x1b[?%dh", m.number)
		default:
			r.addf("\x1b[?%dl", m.number)
		}
	}
	if s.mouse.tracking != 0 {
		r.private(s.mouse.tracking, true)
	}
	if s.mouse.encoding != 0 {
		r.private(s.mouse.encoding, true)
	}
}

// cursor sets the position and the pen. If the cursor is behind a character, it writes that character once more: so
// the terminal knows that a wrap is pending in the last column, and which character a combining mark or REP is for.
func (r *renderer) cursor() {
	s := r.s
	pending := s.x >= s.cols
	insert := s.modes&modeInsert != 0
	line := s.buf.row(s.y)
	at, repeat := s.printed()

	r.private(6, s.modes&modeOrigin != 0)
	x, y := s.x, s.y
	if repeat || pending {
		x = at
	}
	if s.modes&modeOrigin != 0 {
		x, y = x-s.buf.left, y-s.buf.top
	}
	if x != 0 || y != 0 || len(r.b) > 0 {
		r.moveTo(x, y)
	}
	switch {
	case repeat: // the pen has not changed since
		r.selectCharsets(s.charsets)
		r.style(s.pen)
		if insert { // the character moves the rest of the row, which is moved back before
			r.addf("\x1b[4h\x1b[%dP", s.x-at)
			insert = false
		}
		r.retype(line.cells[at])
	case pending:
		c := line.cells[at]
		style := s.styles.get(c.style())
		r.style(style)
		r.selectCharsets(charset.Sets{}) // those of the saved cursor may be others
		r.text(c)
		if c&contentMask == 0 && erasable(style) && line.all(c) {
			r.add("\x1b[1K") // leaves the cursor where it is
		}
	}
	end := len(r.b)
	r.selectCharsets(s.charsets)
	r.style(s.pen)
	if insert {
		r.add("\x1b[4h")
	}
	if pending && !repeat && len(r.b) == end {
		r.add("\x00") // so that the terminal does not repeat the character
	}
}

// retype writes a character as the program did, whose character set may have shown another one as it.
func (r *renderer) retype(c cell) {
	begin := len(r.b)
	r.text(c)
	text, shown := r.b[begin:], &r.s.charsets
	if want := rune(text[0]); want < utf8.RuneSelf && shown.Translate(text[0]) != want {
		for text[0] = ' '; shown.Translate(text[0]) != want && text[0] < '~'; {
			text[0]++
		}
	}
}

// printed returns the column of the character before the cursor, and whether a combining mark or REP would be
// for that one.
func (s *Screen) printed() (x int, ok bool) {
	line, x := s.before()
	return x, s.repeat && x >= 0 && line.cells[x]&contentMask != 0 && line.isWide(x) == (x == s.x-2)
}

func (r *row) all(c cell) bool {
	return !slices.ContainsFunc(r.cells, func(o cell) bool { return o != c })
}

// continuation adds the bytes of an unfinished sequence. A string that is longer than the parser
// keeps is replaced by the beginning of one that terminals ignore: they swallow its rest.
func (r *renderer) continuation() {
	raw, whole := r.s.parser.Continuation()
	if !whole {
		if cut := unknownString(raw); cut != "" {
			r.add(cut)
			return
		}
	}
	r.b = append(r.b, raw...)
}

// unknownString returns the beginning of a string of the same kind as the one that begins with
// raw, with a meaning that no terminal knows. It is empty if raw begins no string.
func unknownString(raw []byte) string {
	kind := raw[1] // after ESC, or a C1 control character in UTF-8
	if raw[0] != esc {
		kind -= 0x40
	}
	switch kind {
	case ']':
		return "\x1b]" + strconv.Itoa(unknownCommand) + ";"
	case 'P':
		return "\x1bP" + strconv.Itoa(unknownCommand) + "z"
	case '_', '^', 'X':
		return "\x1b" + string(rune(kind)) + strconv.Itoa(unknownCommand)
	}
	return ""
}

const (
	esc = 0x1b

	// unknownCommand is a number of an OSC, and a parameter of a DCS, that no terminal knows.
	unknownCommand = 9999
)
