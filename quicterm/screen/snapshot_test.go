package screen

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quicterm/quicterm/quicterm/screen/marks"
)

// diffScreens returns the first difference of what a snapshot keeps, or nothing.
func diffScreens(got, want *Screen) string {
	if g, w := stateOf(got), stateOf(want); g != w {
		return fmt.Sprintf("got  %s\nwant %s", g, w)
	}
	raw, _ := got.parser.Continuation()
	if want, whole := want.parser.Continuation(); whole && string(raw) != string(want) {
		return fmt.Sprintf("unfinished %q, want %q", raw, want)
	}
	rows := func(what string, y int, g, w row) string {
		if g.wrapped != w.wrapped && y > 0 { // no terminal can be told that a first row continues another
			return fmt.Sprintf("%s %d: continues %v, want %v", what, y, g.wrapped, w.wrapped)
		}
		// No terminal can be told of an end within a wide character, or before one that has wrapped into the row.
		column := func(m marks.Row) int {
			end, _ := m.End()
			return max(min(end, want.cols-1), 2)
		}
		told := func(m marks.Row) string {
			_, ends := m.End()
			text := fmt.Sprintf("%q %q %v", m.AppendBegin(nil, 0), m.AppendEnd(nil), ends)
			return strings.ReplaceAll(text, "P;k=i", "A")
		}
		if moved := column(g.mark) - column(w.mark); told(g.mark) != told(w.mark) || moved < 0 || moved > 1 {
			return fmt.Sprintf("%s %d: got the mark %+v, want %+v", what, y, g.mark, w.mark)
		}
		for x := range want.cols {
			if !sameCell(got, want, g.at(x), w.at(x)) {
				return fmt.Sprintf("%s %d, column %d: got %+v, want %+v", what, y, x, Row{got, g}.Cell(x), Row{want, w}.Cell(x))
			}
		}
		return ""
	}
	if g, w := got.history.lines, want.history.lines; g != w {
		return fmt.Sprintf("%d rows of scrollback, want %d", g, w)
	}
	for i := range want.history.lines {
		if d := rows("scrollback", i, got.Row(i-got.history.lines).r, want.Row(i-want.history.lines).r); d != "" {
			return d
		}
	}
	for y := range want.rows {
		if d := rows("row", y, *got.buf.row(y), *want.buf.row(y)); d != "" {
			return d
		}
		if d := rows("main row", y, *got.main.row(y), *want.main.row(y)); d != "" {
			return d
		}
	}
	return ""
}

func (r *row) at(x int) cell {
	if x < len(r.cells) {
		return r.cells[x]
	}
	return 0
}

// sameCell reports whether two cells look the same. A blank with attributes counts as a space.
func sameCell(got, want *Screen, g, w cell) bool {
	gs, ws := got.styles.get(g.style()), want.styles.get(w.style())
	if gs.Link != 0 || ws.Link != 0 {
		if got.Hyperlink(gs.Link) != want.Hyperlink(ws.Link) {
			return false
		}
		gs.Link, ws.Link = 0, 0
	}
	content := func(c cell, style Style) cell {
		if c&(contentMask|spacerFlag) == 0 && !erasable(style) {
			c |= ' '
		}
		return c & (contentMask | wideFlag | spacerFlag)
	}
	if gs != ws {
		return false
	}
	g, w = content(g, gs), content(w, ws)
	if g&clusterFlag != 0 && w&clusterFlag != 0 {
		return string(got.appendText(nil, g)) == string(want.appendText(nil, w))
	}
	return g == w
}

// stateOf returns everything but the rows.
func stateOf(s *Screen) string {
	linked := func(style Style) string {
		h := s.Hyperlink(style.Link)
		style.Link = 0
		return fmt.Sprint(style, h)
	}
	_, repeat := s.printed()
	pushed := slices.Clone(s.titles)
	for i := range pushed {
		if pushed[i].which == 1 {
			pushed[i].title = "" // is not used
		}
	}
	text := fmt.Sprint(s.x, s.y, s.Alternate(), linked(s.pen), s.charsets, s.tabs, s.modes, s.mouse, s.modifyKeys, s.shape,
		repeat, s.colors)
	if s.Alternate() {
		text += fmt.Sprint(" ", s.entered)
	}
	if s.Alternate() && s.entered != 1049 {
		text += fmt.Sprint(" ", min(s.main.x, s.cols-1), s.main.y)
	}
	text += fmt.Sprintf(" %q %v %q", s.title, pushed, s.directory)
	in, _ := s.InputZone()
	text += fmt.Sprint(" ", in)
	for _, b := range []*buffer{s.main, s.buf} {
		text += fmt.Sprint(" ", b.top, b.bottom, b.left, b.right)
	}
	for _, b := range []*buffer{s.main, cmp.Or(s.alt, new(buffer))} {
		c := b.saved
		text += fmt.Sprint(" ", b.keyboard, min(c.x, s.cols-1), c.y, linked(c.pen), c.charsets)
	}
	return text
}

// checkSnapshot takes a snapshot after at bytes of the output, and compares the screen that it
// gives, then and after the rest, with the original.
func checkSnapshot(t testing.TB, cols, rows int, output []byte, at int) {
	t.Helper()
	limits := Limits{Lines: 5000, Bytes: 64 << 20}
	s, f := New(cols, rows, limits), New(cols, rows, limits)
	s.Write(output[:at])
	if line := s.buf.row(s.y); s.x >= cols && line.cells[cols-1]&(contentMask|spacerFlag) == 0 && !line.all(line.cells[cols-1]) {
		return // SL has made a blank of the character after which a wrap is pending, which becomes a space
	}
	snapshot := s.Snapshot(Snapshot{Lines: 5000})
	f.Write(snapshot)
	if d := diffScreens(f, s); d != "" {
		t.Fatalf("snapshot at %d of %d, %dx%d:\n%.2000q\n%s", at, len(output), cols, rows, snapshot, d)
	}
	s.Write(output[at:])
	f.Write(output[at:])
	if d := diffScreens(f, s); d != "" {
		t.Fatalf("%d bytes after a snapshot at %d, %dx%d:\n%.2000q\n%s", len(output)-at, at, cols, rows, snapshot, d)
	}
}

// At any byte of any recording, a snapshot and the rest of the recording show what the recording does.
func TestSnapshot(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.raw")
	if err != nil || len(files) == 0 {
		t.Fatal("no recordings:", err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".raw"), func(t *testing.T) {
			raw := read(t, file)
			positions := []int{0, len(raw)}
			for range 8 {
				positions = append(positions, r.IntN(len(raw)+1))
			}
			slices.Sort(positions)
			for _, at := range positions {
				checkSnapshot(t, 80, 24, raw, at)
			}
		})
	}
}

func FuzzSnapshot(f *testing.F) {
	for _, seed := range []string{
		"hello\r\nworld", "\x1b[31;44mabc\x1b[K\r\n\x1b[2J", "0123456789ABCDEFG宽宽宽宽宽宽宽e\u0301", "\x1b[?1049h\x1b7\x1b[2;3r\x1b[?6hx",
		"\x1b[?1049h\x1b[2;3H\x1b[1m\x1b(0\x1b7\x1b[>1u\x1b[?1049l\x1b[?1049h\x1b8x",
		"\x1b7\x1b)A012345678901234#\x0e\x1b7", "\x1b[10GX\x1b[D\x1b[K", "\x1b]0;t\a\x1b[22t\x1b]2;u\a\x1b[>1u\x1b[=5u\x1b[3g\x1b[5G\x1bH", "\x1b(0\x1b)A\x0eq#\x1b[4habc\x1b[2b",
		"\x1b]133;A\a$ \x1b]133;B\as\r\n\x1b]133;C\ahi\x1b]133;D;1\a\x1b]133;A\a$ \x1b[4D\x1b[K\x1b]133;B\a",
		"\r\n\x1b[3C\x1b]133;D\a宽", "\x1b)4\x0e000]", "\x1b)4\x0e000]\x1b[2b",
		"0123456789\x1b]133;D\aA\x1b[1G\x1b]133;C\a\x1b]133;A\a\x1b[M",
	} {
		f.Add([]byte(seed), uint16(len(seed)/2), byte(0))
		f.Add([]byte(seed), uint16(len(seed)), byte(0x34))
	}
	f.Fuzz(func(t *testing.T, output []byte, at uint16, size byte) {
		checkSnapshot(t, 2+int(size>>4), 2+int(size&15), output, int(at)%(len(output)+1))
	})
}

// A snapshot has what differs from a terminal after its reset, and nothing else.
func TestSnapshotSize(t *testing.T) {
	tests := []struct{ why, output, want string }{
		{"nothing", "", ""},
		{"text", "one\r\ntwo", "one\r\ntwo\x1b[2;3Ho"},
		{"a prompt", "\x1b[1;32m$\x1b[m ", "\x1b[1;32m$\x1b[m \x1b[1;2H "},
		{"blanks", "a\x1b[5Gb\x1b[3;3H", "a\x1b[3Cb\x1b[3;3H"},
		{"a line that continues", "0123456789abc\r", "0123456789abc\x1b[2H"},
		{"a background", "\x1b[44m\x1b[2J\x1b[mx", "x\x1b[44m\x1b[K\r\n\x1b[K\r\n\x1b[K\r\n\x1b[K\x1b[H\x1b[mx"},
		{"modes that are usual again", "\x1b[?1;2004;1000h\x1b[?1;2004;1000l\x1b=\x1b>\x1b[4 q\x1b[0 q", ""},
		{"the alternate screen", "main\x1b[?1049h\x1b[Halt", "main\x1b[1;5H\x1b[?1049h\x1b[Halt\x1b[1;3Ht"},
		{"a hidden cursor", "\x1b[?1049h\x1b[2;3H\x1b[1m\x1b7\x1b[?1049l", "\x1b[?47h\x1b[2;3H\x1b[1m\x1b7\x1b[m\x1b[H\x1b[?47l\x1b[H"},
		{"a hidden keyboard", "\x1b[?1049h\x1b[>1u\x1b[?1049l\x1b[m", "\x1b[?47h\x1b[>1u\x1b[?47l\x1b[H"},
		{"a sequence that has begun", "\x1b[1;3", "\x1b[1;3"},
		{"a character that has begun", "\xe6\xbc", "\xe6\xbc"},
		{"marks", "\x1b]133;A\a$ \x1b]133;B\aab\r\n\x1b]133;C\aout\x1b]133;D;1\a\x1b]133;A\a$ ",
			"\x1b]133;A\x1b\\$ ab\r\n\x1b]133;C\x1b\\out\x1b]133;D;1\x1b\\\x1b]133;P;k=i\x1b\\$ \x1b[2;5H "},
		{"a command that is edited", "\x1b]133;A\a$ \x1b]133;B\aa",
			"\x1b]133;A\x1b\\$ a\x1b[1;4H\x1b]133;B\x1b\\\x1b[1;3Ha"},
		{"a long string", "\x1b]52;c;" + strings.Repeat("A", 10000), "\x1b]9999;"},
		{"a long image", "\x1bPq" + strings.Repeat("A", 10000), "\x1b[2m[image]\x1b[1;8H\x1b[m\x1bP9999z"},
	}
	for _, test := range tests {
		s := New(10, 4, Limits{})
		s.Write([]byte(test.output))
		if got := string(s.Snapshot(Snapshot{})); got != test.want {
			t.Errorf("%s: %q, want %q", test.why, got, test.want)
		}
	}
}

// A bound leaves out old rows of the scrollback.
func TestSnapshotBounded(t *testing.T) {
	s := New(80, 24, Limits{Lines: 1000})
	for i := range 1024 {
		fmt.Fprintf(s, "\x1b[3%dmline\x1b[m %d\r\n", i%8, i)
	}
	whole := s.Snapshot(Snapshot{Lines: 1000})
	if n := len(whole); n > 24<<10 {
		t.Errorf("%d bytes for 1000 short lines", n)
	}
	f := New(80, 24, Limits{})
	f.Write(s.Snapshot(Snapshot{Lines: 1000, Bytes: len(whole) / 2}))
	if n := f.Lines(); n < 250 || n > 500 || f.Row(-1).Line() == 0 || len(f.Dump().Screen[0].Runs) != 2 {
		t.Errorf("%d lines of scrollback in half of the bytes", n)
	}
	if got := s.Snapshot(Snapshot{Bytes: 100}); got != nil {
		t.Errorf("%d bytes in 100", len(got))
	}
}
