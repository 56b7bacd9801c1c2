package screen

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestResizeAgainstXterm compares the screens after output like a shell's and resizes with those of
// xterm.js, which testdata/resize.json has.
func TestResizeAgainstXterm(t *testing.T) {
	var cases []struct {
		Cols, Rows, Scrollback int
		Steps                  []json.RawMessage // output in base64, or a size
		Want                   Dump
	}
	if err := json.Unmarshal(read(t, "testdata/resize.json"), &cases); err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		s := New(c.Cols, c.Rows, Limits{Lines: c.Scrollback})
		for _, step := range c.Steps {
			var size [2]int
			var output []byte
			if json.Unmarshal(step, &size) == nil {
				s.Resize(size[0], size[1])
			} else if err := json.Unmarshal(step, &output); err != nil {
				t.Fatal(err)
			}
			s.Write(output)
			checkInvariants(t, s)
		}
		if diff := compare(s.Dump(), c.Want); diff != "" {
			t.Errorf("case %d: %s", i, diff)
		}
	}
}

// rowsOf returns the rows of the scrollback and of the screen, as text with line ids.
func rowsOf(s *Screen) (rows []string) {
	for y := -s.Lines(); y < s.rows; y++ {
		r := s.Row(y)
		rows = append(rows, fmt.Sprintf("%d %s", r.Line(), r.Text()))
	}
	return rows
}

// TestLines checks that lines keep their ids.
func TestLines(t *testing.T) {
	s := New(10, 3, Limits{})
	s.Write([]byte("a long line of text\r\nshort\r\n"))
	want := func(why string, rows ...string) {
		t.Helper()
		if got := strings.Join(rowsOf(s), "|"); got != strings.Join(rows, "|") {
			t.Errorf("%s: got %s, want %s", why, got, strings.Join(rows, "|"))
		}
	}
	want("wrapped", "1 a long lin", "1 e of text", "3 short", "4 ")
	s.Write([]byte("and\r\nmore\r\n"))
	want("scrolled", "1 a long lin", "1 e of text", "3 short", "4 and", "5 more", "6 ")
	s.Resize(20, 3)
	want("widened", "1 a long line of text", "3 short", "4 and", "5 more", "6 ")
	s.Resize(7, 3)
	want("narrowed", "1 a long", "1 line of", "1  text", "3 short", "4 and", "5 more", "6 ")
	s.Write([]byte("\x1b[H\x1b[M"))
	want("deleted", "1 a long", "1 line of", "1  text", "3 short", "5 more", "6 ", "7 ")
}

func TestResizeLimits(t *testing.T) {
	s := New(-5, 0, Limits{})
	if cols, rows := s.Size(); cols != 2 || rows != 1 {
		t.Errorf("%d x %d", cols, rows)
	}
	s.Resize(1<<30, 1<<30)
	if cols, rows := s.Size(); cols*rows > maxCells || cols > maxCols {
		t.Errorf("%d x %d", cols, rows)
	}
	s.Write([]byte("x\x1b[999999;999999Hy"))
	checkInvariants(t, s)
}

// The last character is not before the cursor anymore: the one that is keeps its colour.
func TestSnapshotOfNarrowedScreen(t *testing.T) {
	s := New(10, 3, Limits{})
	s.Write([]byte("\x1b[?1049h01234567\x1b[31m8"))
	s.Resize(5, 3)
	got := New(5, 3, Limits{})
	got.Write(s.Snapshot(Snapshot{}))
	if d := diffScreens(got, s); d != "" {
		t.Error(d)
	}
}

// TestAsTerminalsDo checks where most terminals agree against xterm.js.
func TestAsTerminalsDo(t *testing.T) {
	for _, test := range []struct{ why, output, want string }{
		{"a saved cursor keeps its place", "\n\x1b7\n\n\n\x1b8x", "|x"},
		{"a saved cursor keeps the character set", "\x1b)0\x0e\x1b7\x0f\x1b8q", "─"},
		{"a relative move in origin mode", "\x1b[2;3r\x1b[?6h\x1b[Bx", "||x"},
		{"lines inserted between margins", "\x1b[?69habcd\r\nefgh\r\nijkl\x1b[2;3s\x1b[3;2H\x1b[L", "abcd|efgh|i  l"},
		{"left and right margins", "\x1b[?69h\x1b[2;4s\x1b[1;2Habcd", " abc| d"},
		{"the first half of a wide character", "宽\x1b[1;2Hx", " x"},
		{"the second half of a wide character", "宽\x1b[1;1Hx", "x"},
		{"an insertion into a wide character", "宽x\x1b[1;2H\x1b[@", "   x"},
		{"a combining character after a sequence", "e\x1b[m\u0301x", "e\u0301x"},
	} {
		s := New(10, 3, Limits{})
		s.Write([]byte(test.output))
		var rows []string
		for y := range s.rows {
			rows = append(rows, s.Row(y).Text())
		}
		if got := strings.TrimRight(strings.Join(rows, "|"), "|"); got != test.want {
			t.Errorf("%s: %q, want %q", test.why, got, test.want)
		}
		checkInvariants(t, s)
	}
}
