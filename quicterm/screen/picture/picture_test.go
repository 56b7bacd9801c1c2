package picture

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/quicterm/quicterm/quicterm/screen"
)

func show(cols, rows int, output string) *screen.Screen {
	s := screen.New(cols, rows, screen.Limits{})
	s.Write([]byte(output))
	return s
}

func TestText(t *testing.T) {
	for output, want := range map[string]string{
		"":                                   "",
		"one\r\n\r\n two  \r\n\r\n":          "one\n\n two\n",
		"0123456789ab":                       "0123456789\nab\n",
		"e\u0301漢\x1b[8msecret\x1b[0m.":      "e\u0301漢      .\n",
		"\x1b[41m  \x1b[0m\x1b]2;title\a":    "",
		"a\x1b[44mb\x1b[7;31mc \x1b[0m d \t": "abc  d\n",
	} {
		var b strings.Builder
		if err := Text(&b, show(10, 6, output).Rows(0)); err != nil || b.String() != want {
			t.Errorf("%q is shown as %q, %v; want %q", output, b.String(), err, want)
		}
	}
}

func TestANSI(t *testing.T) {
	for output, want := range map[string]string{
		"plain":                                 "plain\n",
		"a\x1b[41m  \x1b[0m  \x1b[36m  ":        "a\x1b[0;41m  \x1b[0m\n",
		"\x1b[1;38;5;7mbold":                    "\x1b[0;1;37mbold\x1b[0m\n",
		"\x1b[9;94;48;5;200ma\x1b[7;53;2;3;5mb": "\x1b[0;9;94;48;5;200ma\x1b[0;2;3;5;7;9;53;94;48;5;200mb\x1b[0m\n",
		"\x1b[4ma\x1b[4:3;58;5;1mb":             "\x1b[0;4ma\x1b[0;4:3;58;5;1mb\x1b[0m\n",
		"\x1b[38;2;1;2;3;48;2;4;5;6m.":          "\x1b[0;38;2;1;2;3;48;2;4;5;6m.\x1b[0m\n",
		"\x1b]8;;http://x\a.\x1b]8;;\a":         ".\n",
	} {
		var b strings.Builder
		if err := ANSI(&b, show(10, 4, output).Rows(0)); err != nil || b.String() != want {
			t.Errorf("%q is shown as %q, %v; want %q", output, b.String(), err, want)
		}
	}
}

func TestAppendColumns(t *testing.T) {
	row := show(10, 2, "ab\x1b[31m漢c\x1b[0m  d").Row(0)
	for _, test := range []struct {
		from, to int
		want     string
	}{
		{0, 10, "ab\x1b[0;31m漢c\x1b[0m  d"},
		{1, 3, "b\x1b[0;31m \x1b[0m"},
		{3, 6, "\x1b[0;31m c\x1b[0m "},
		{7, 100, "d"}, {8, 10, ""}, {20, 30, ""},
	} {
		if got := string(AppendColumns(nil, row, test.from, test.to)); got != test.want {
			t.Errorf("columns %d to %d: %q, want %q", test.from, test.to, got, test.want)
		}
	}
}

// What ANSI writes looks the same on another screen.
func TestANSIOfPrograms(t *testing.T) {
	files, err := filepath.Glob("../testdata/programs/*.raw")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		output, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		before := show(80, 24, string(output))
		var b bytes.Buffer
		if err := ANSI(&b, before.Rows(0)); err != nil {
			t.Fatal(err)
		}
		text := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
		after := show(80, 24, string(bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))))
		for y := range 24 {
			want, got := rowOf(before, y), rowOf(after, y)
			if len(got) != len(want) {
				t.Errorf("%s, row %d: %d columns, want %d", file, y, len(got), len(want))
				continue
			}
			for x := range want {
				if got[x] != want[x] {
					t.Errorf("%s, row %d, column %d: %v, want %v", file, y, x, got[x], want[x])
					break
				}
			}
		}
	}
}

// rowOf returns what can be seen of a row.
func rowOf(s *screen.Screen, y int) []screen.Cell {
	row := s.Row(y)
	var cells []screen.Cell
	for x := range width(row, true) {
		c := row.Cell(x)
		c.Text = Shown(c)
		if c.Style = look(c.Style); c.Width == 0 {
			c.Style = screen.Style{} // of the character before
		}
		cells = append(cells, c)
	}
	return cells
}

func TestPNG(t *testing.T) {
	const cols, rows = 10, 4
	s := show(cols, rows, "\x1b[41m \x1b[0;7m \x1b[0m█漢\x1b[8m█\x1b[0;48;2;1;2;3m \x1b[48;5;21;2m \x1b[0me\u0301\ufffdW\x1b[2;4Hx\x1b[1;4mx\x1b[0;53;9;21mx")
	var b bytes.Buffer
	if _, err := PNG(&b, s); err != nil {
		t.Fatal(err)
	}
	picture, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	width, height := (picture.Bounds().Dx()-2*margin)/cols, (picture.Bounds().Dy()-2*margin)/rows
	if width < 8 || height < 16 || picture.Bounds().Dx() != cols*width+2*margin {
		t.Fatalf("an image of %v", picture.Bounds())
	}
	at := func(x, y int) color.Color {
		return picture.At(margin+x*width+width/2, margin+y*height+height/2)
	}
	for x, want := range map[int]color.Color{
		0: palette(1), 1: foreground, 2: foreground, 5: background, 6: color.RGBA{1, 2, 3, 255}, 7: color.RGBA{0, 0, 255, 255},
	} {
		if got := at(x, 0); !reflect.DeepEqual(color.RGBAModel.Convert(got), color.RGBAModel.Convert(want)) {
			t.Errorf("column %d is %v, want %v", x, got, want)
		}
	}
	// A box stands for what the font does not have; it has an empty middle.
	wide := image.Rect(margin+3*width, margin, margin+5*width, margin+height)
	if picture.At(wide.Min.X+2, wide.Min.Y+2) != color.Color(foreground) || at(4, 0) == color.Color(foreground) {
		t.Error("no box for a wide character")
	}
}

// The cursor is a block, unless it is hidden.
func TestCursorInPNG(t *testing.T) {
	for output, want := range map[string]color.RGBA{
		"ab":                                   foreground,
		"ab\x1b[?25l":                          background,
		"\x1b[7mabc\x1b[D":                     background, // of a cell that is inverse itself
		"ab\x1b[48;2;1;2;3;38;2;4;5;6m \x1b[D": {4, 5, 6, 255},
		"a漢\x1b[D":                             foreground,
		"0123456789\x1b[3G":                    foreground,
	} {
		var b bytes.Buffer
		s := show(10, 4, output)
		if _, err := PNG(&b, s); err != nil {
			t.Fatal(err)
		}
		picture, err := png.Decode(&b)
		if err != nil {
			t.Fatal(err)
		}
		width := (picture.Bounds().Dx() - 2*margin) / 10
		at := image.Pt(margin+2*width+1, margin+1) // above the character
		if got := color.RGBAModel.Convert(picture.At(at.X, at.Y)); got != color.Color(want) {
			t.Errorf("%q: the corner of the cursor's cell is %v, want %v", output, got, want)
		}
	}
}

func TestLargePNG(t *testing.T) {
	if _, err := PNG(new(bytes.Buffer), screen.New(4000, 250, screen.Limits{})); err != ErrTooLarge {
		t.Errorf("error %v, want %v", err, ErrTooLarge)
	}
}

// No output of a program brings a control character of its own into the picture.
func FuzzPicture(f *testing.F) {
	f.Add([]byte("\x1b[1;31ma\u009b\u0085\x1b[8mx\xff\u202e\U0001f600\u200d"))
	f.Fuzz(func(t *testing.T, output []byte) {
		s := screen.New(20, 5, screen.Limits{})
		s.Write(output)
		var b strings.Builder
		if err := Text(&b, s.Rows(0)); err != nil {
			t.Fatal(err)
		}
		if i := strings.IndexFunc(b.String(), func(r rune) bool { return r != '\n' && (r < ' ' || r >= 0x7f && r < 0xa0) }); i >= 0 {
			t.Fatalf("%q shows %q", output, b.String())
		}
		if _, err := PNG(new(bytes.Buffer), s); err != nil {
			t.Fatal(err)
		}
	})
}

// What the font does not have is told.
func TestPNGTellsMissing(t *testing.T) {
	s := screen.New(40, 3, screen.Limits{})
	s.Write([]byte("│ é 終了 終 😀 e\u0301"))
	missing, err := PNG(new(bytes.Buffer), s)
	if want := []rune{'\u0301', '了', '終', '😀'}; err != nil || !slices.Equal(missing, want) {
		t.Errorf("missing are %q, %v; want %q", missing, err, want)
	}
}
