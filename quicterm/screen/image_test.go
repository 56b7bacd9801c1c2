package screen

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// images are images of about a size, in the protocols of terminals.
func images(size int) map[string]string {
	var sixel, kitty strings.Builder
	sixel.WriteString("\x1bP0;1;0q\"1;1;640;480#0;2;100;0;0")
	for row := 0; sixel.Len() < size; row++ {
		fmt.Fprintf(&sixel, "#%d!%d~@AB?w$-", row%16, 1+row%500)
	}
	sixel.WriteString("\x1b\\")
	kitty.WriteString("\x1b_Ga=T,f=24,s=640,v=480,m=1;")
	for kitty.Len() < size {
		kitty.WriteString(strings.Repeat("QUJD", 1024) + "\x1b\\\x1b_Gm=1;")
	}
	kitty.WriteString("\x1b\\\x1b_Gm=0;\x1b\\")
	return map[string]string{
		"sixel": sixel.String(), "kitty": kitty.String(),
		"iTerm2": "\x1b]1337;File=name=eA==;size=9;inline=1:" + strings.Repeat("QUJD", size/4) + "\a",
	}
}

// BenchmarkImages writes images as large as an emulator is fed at once.
func BenchmarkImages(b *testing.B) {
	all := images(5 << 20)
	all["text"] = strings.Repeat(strings.Repeat("the quick brown fox ", 3)+"\r\n", 5<<20/62)
	for name, image := range all {
		b.Run(name, func(b *testing.B) {
			s := New(80, 24, Limits{})
			b.SetBytes(int64(len(image)))
			for b.Loop() {
				for part := range slices.Chunk([]byte(image), 64<<10) {
					s.Write(part)
				}
			}
		})
	}
}

// A snapshot, and the scrollback, say where an image was, whatever follows it, and how its output is cut.
func TestImageLeavesItsPlace(t *testing.T) {
	long := strings.Repeat("QUJD", 4096)
	for name, c := range map[string]struct {
		output string
		want   string // the first row and the second one
	}{
		"sixel":                    {"a\x1bP0;1q#0~~@-\x1b\\\r\nb", "a[image]|b"},
		"a large one":              {"\x1bPq" + strings.Repeat("#0~-", 4096) + "\x1b\\\r\nb", "[image]|b"},
		"kitty":                    {"\x1b_Ga=T,f=100;" + long + "\x1b\\$ ", "[image]$|"},
		"kitty in parts":           {"\x1b_Gf=100,a=T,m=1;QUJD\x1b\\\x1b_Gm=1;QUJD\x1b\\\x1b_Gm=0;QUJD\x1b\\x", "[image]x|"},
		"kitty, sent before":       {"\x1b_Ga=t,i=1;QUJD\x1b\\a\x1b_Ga=p,i=1\x1b\\b", "a[image]b|"},
		"kitty, cursor stays":      {"a\x1b_Ga=T,C=1;QUJD\x1b\\b", "ab" + "image]|"},
		"kitty, by characters":     {"\x1b_Ga=T,U=1,i=1;QUJD\x1b\\a", "a|"},
		"kitty, a question":        {"\x1b_Ga=q,i=1;QUJD\x1b\\a", "a|"},
		"kitty, removed":           {"\x1b_Ga=d\x1b\\a", "a|"},
		"iTerm2":                   {"\x1b]1337;File=name=eA==;inline=1:" + long + "\a\r\nb", "[image]|b"},
		"iTerm2 in parts":          {"\x1b]1337;MultipartFile=inline=1\a\x1b]1337;FilePart=QUJD\a\x1b]1337;FileEnd\ab", "[image]b|"},
		"iTerm2, cursor stays":     {"\x1b]1337;File=inline=1;doNotMoveCursor=1:QUJD\a", "[image]|"},
		"iTerm2, a download":       {"\x1b]1337;File=name=eA==:QUJD\aa", "a|"},
		"at the end of a row":      {"\x1b[1;77H\x1bPq~\x1b\\", strings.Repeat(" ", 76) + "[ima|"},
		"behind the last column":   {strings.Repeat("x", 80) + "\x1bPq~\x1b\\y", strings.Repeat("x", 80) + "|y"},
		"in another character set": {"\x1b(0q\x1bPq~\x1b\\", "─[image]|"},
		"a question about modes":   {"\x1bP$qm\x1b\\a", "a|"},
		"text that looks like it":  {"Pq~\x1b]0;1337;File=inline=1:\a", "Pq~|"},
	} {
		var whole []byte
		for _, size := range []int{1, 7, 4096, 1 << 20} {
			s := New(80, 24, Limits{})
			s.Write([]byte("\x1b[31m"))
			for part := range slices.Chunk([]byte(c.output), size) {
				s.Write(part)
			}
			if got := s.Row(0).Text() + "|" + s.Row(1).Text(); got != c.want {
				t.Errorf("%s, in pieces of %d bytes: %q, want %q", name, size, got, c.want)
			}
			if s.pen != (Style{Fg: Palette(1)}) {
				t.Errorf("%s: the pen is %+v", name, s.pen)
			}
			snapshot := s.Snapshot(Snapshot{})
			if whole == nil {
				whole = snapshot
			}
			if !bytes.Equal(snapshot, whole) {
				t.Errorf("%s: in pieces of %d bytes another snapshot", name, size)
			}
		}
	}
}

// A terminal may show the image, with its cursor then in another row and column: nothing is drawn where that would be seen.
func TestDrawBelowImage(t *testing.T) {
	const image = "\x1bPq~-\x1b\\"
	for name, c := range map[string]struct {
		output   string
		drawable bool
		highest  int // row in which can be drawn
	}{
		"none":              {"a\r\n$ ", true, 0},
		"beside":            {"a\r\n" + image + "$ ", false, 0},
		"below":             {"a\r\n" + image + "\r\n$ ", true, 2},
		"two rows below":    {"a\r\n" + image + "\r\nb\r\n$ ", true, 2},
		"after it scrolled": {"a\r\n" + image + strings.Repeat("\r\n", 11) + "$ ", true, 0},
		"an old screen":     {"\x1b[9Ha\x1b[H" + image + "\r\n$ ", false, 0},
		"cleared":           {"\x1b[9Ha\x1b[H" + image + "\x1b[H\x1b[2J$ ", true, 0},
		"at the bottom":     {strings.Repeat("\r\n", 9) + image + "\r\n$ ", true, 9},
		"back over it":      {"a\r\n" + image + "\r\n\x1b[2A$ ", false, 0},
	} {
		s := New(80, 10, Limits{})
		s.Write([]byte(c.output))
		if s.Drawable() != c.drawable {
			t.Errorf("%s: drawable is %v", name, s.Drawable())
		}
		for y := range 10 {
			can := s.CanDraw(Placed{Place{5, y}, Cell{Text: "x", Width: 1}})
			if _, at := s.Cursor(); c.drawable && y <= at && can != (y >= c.highest) {
				t.Errorf("%s: a cell in row %d can be drawn: %v", name, y, can)
			}
		}
	}
}
