package screen

import (
	"flag"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Random cases are the same in each run, so that a test that passes does so again. -rapid.seed=0 tries others.
func init() { flag.Set("rapid.seed", "1") }

// observe returns the screen after output.
func observe(output ...string) *Screen {
	s := New(80, 24, Limits{})
	for _, o := range output {
		s.Write([]byte(o))
	}
	return s
}

// programs have the sequences that programs send when they start, what undoes those,
// and what the programs send when they end.
var programs = []struct{ name, start, undo, stop string }{
	{
		name:  "bash at its prompt",
		start: "\x1b[?2004h\x1b]0;user@host: ~\a\x1b[01;32muser@host\x1b[00m$ ",
		undo:  "\x1b[?2004l",
		stop:  "\r\n\x1b[?2004l\r",
	},
	{
		name:  "less",
		start: "\x1b[?1049h\x1b[22;0;0t\x1b[?1h\x1b=\r",
		undo:  "\x1b[?1049l\x1b[m\x1b[?1l\x1b>\x1b[23;0t",
		stop:  "\x1b[?1l\x1b>\r\x1b[K\x1b[?1049l\x1b[23;0;0t",
	},
	{
		name: "vim",
		start: "\x1b[?1006;1000h\x1b[?1002h\x1b[?1049h\x1b[22;0;0t\x1b[>4;2m\x1b[?1h\x1b=\x1b[?2004h\x1b[?1004h" +
			"\x1b[1;24r\x1b[?12h\x1b[?12l\x1b[22;2t\x1b[22;1t\x1b[27m\x1b[H\x1b[2J\x1b[?25l",
		undo: "\x1b[?1049l\x1b[?25h\x1b[m\x1b[?1l\x1b>\x1b[>4m\x1b[?1000l\x1b[?1002l\x1b[?1006l\x1b[?1004l\x1b[?2004l" +
			"\x1b[23;1t\x1b[23;2t\x1b[23;0t",
		stop: "\x1b[?1006;1000l\x1b[?1002l\x1b[?2004l\x1b[>4;m\x1b[23;2t\x1b[23;1t\x1b[?1004l\x1b[?1l\x1b>" +
			"\x1b[?1049l\x1b[23;0;0t\x1b[?25h\x1b[>4;m",
	},
	{
		name:  "vim's cursor in insert mode",
		start: "\x1b[6 q",
		undo:  "\x1b[ q",
		stop:  "\x1b[0 q",
	},
	{
		name:  "htop, with a mouse",
		start: "\x1b[?1049h\x1b[22;0;0t\x1b[1;24r\x1b(B\x1b[m\x1b[4l\x1b[?7h\x1b[?1h\x1b=\x1b[?25l\x1b[39;49m\x1b[?1000h\x1b[?1006h",
		undo:  "\x1b[?1049l\x1b[?25h\x1b[m\x1b[?1l\x1b>\x1b[?1000l\x1b[?1006l\x1b[23;0t",
		stop:  "\x1b[?1000l\x1b[?1006l\x1b[24;1H\x1b[?12l\x1b[?25h\x1b[?1049l\x1b[23;0;0t\r\x1b[?1l\x1b>",
	},
	{
		name:  "fish, with kitty keyboard",
		start: "\x1b[?2004h\x1b[?2031h\x1b[>4;1m\x1b[=5u\x1b=",
		undo:  "\x1b>\x1b[>4m\x1b[=0u\x1b[?2004l\x1b[?2031l",
		stop:  "\x1b[?2004l\x1b[?2031l\x1b[>4;0m\x1b[=0u\x1b>",
	},
	{
		name:  "an editor, with kitty keyboard pushed on the alternate screen",
		start: "\x1b[?1049h\x1b[>1u\x1b[?2026h\x1b[?2048h",
		undo:  "\x1b[?2026l\x1b[<1u\x1b[?1049l\x1b[m\x1b[?2048l",
		stop:  "\x1b[?2048l\x1b[?2026l\x1b[<u\x1b[?1049l",
	},
	{
		name:  "tmux with a status line, in a colour",
		start: "\x1b[?1049h\x1b[?1h\x1b=\x1b[1;23r\x1b[24;1H\x1b[30;42m[0] 0:bash*",
		undo:  "\x1b[?1049l\x1b7\x1b[r\x1b8\x1b[m\x1b[?1l\x1b>",
		stop:  "\x1b[m\x1b[1;24r\x1b[?1l\x1b>\x1b[?1049l",
	},
	{
		name:  "apt's progress bar on the main screen",
		start: "\x1b[0;23r\x1b[24;0f\x1b[42m\x1b[30mProgress",
		undo:  "\x1b[r\x1b[999;1H\x1b[m",
		stop:  "\x1b[49m\x1b[39m\x1b[0m\x1b[0;24r",
	},
	{
		name:  "an alternate screen without a cursor of its own",
		start: "\x1b7\x1b[?47h\x1b[2J",
		undo:  "\x1b[?47l\x1b[999;1H\x1b[m",
		stop:  "\x1b[2J\x1b[?47l\x1b8",
	},
	{
		name:  "a curses program of a terminal that draws lines with G1",
		start: "\x1b(B\x1b)0\x1b[?1049h\x0elqqk",
		undo:  "\x1b[?1049l\x1b[m\x1b)B\x0f",
		stop:  "\x1b[?1049l\x0f\x1b)B",
	},
	{
		name:  "a program of a terminal that draws them with G0",
		start: "\x1b(0lqqk",
		undo:  "\x1b(B\x0f",
		stop:  "\x1b(B",
	},
	{
		name:  "unusual values of modes",
		start: "\x1b[4h\x1b[?7;25l\x1b[?5;6h",
		undo:  "\x1b[4l\x1b[?5l\x1b[?6l\x1b[?7h\x1b[999;1H\x1b[?25h",
		stop:  "\x1b[?7;25h\x1b[?5;6l\x1b[4l",
	},
	{
		name:  "colours of the terminal itself",
		start: "\x1b]4;1;red;300;x;7;?\a\x1b]10;#fff;#000\x1b\\\x1b]12;?\a",
		undo:  "\x1b]110\x1b\\\x1b]111\x1b\\\x1b]104;1\x1b\\",
		stop:  "\x1b]104\a\x1b]110\a\x1b]111\a",
	},
	{
		name:  "attributes and a link",
		start: "\x1b[1;31m\x1b]8;id=1;http://a.example\atext",
		undo:  "\x1b[m\x1b]8;;\x1b\\",
		stop:  "\x1b]8;;\a\x1b[m",
	},
	{name: "attributes that end", start: "\x1b[1m\x1b[38;5;1mx\x1b[48;2;0;0;0;0m\x1b[0;4m\x1b[;m\x1b[39;22m"},
	{name: "titles and unknown modes", start: "\x1b]2;t\a\x1b[?13h\x1b[?1000$p\x1b[23;0t"},
	{name: "the usual values", start: "\x1b[?7h\x1b[?25h\x1b[?1049l\x1b[?1000l\x1b>\x1b(B\x1b[0 q\x1b[>4;0m\x1b[=0u\x1b[<u\x1b[1;24r"},
	{name: "no modes", start: "\x1b[?h\x1b[?;xh\x1b[h\x1b[?99999999999999999999h\x1b[?4711h\x1b[>40;1m\x1b[u\x1b[1u"},
	{name: "cut off", start: "\x1b(\x1b[?1000\x1b)\x18\x1b[?1000\x18h\x1b[>1\x1b[6 \x18\x1b(é"},
}

func TestUndo(t *testing.T) {
	for _, p := range programs {
		if got := string(observe(p.start).Undo()); got != p.undo {
			t.Errorf("%s: undone by %q, want %q", p.name, got, p.undo)
		}
		if got := observe(p.start, p.stop).Undo(); got != nil {
			t.Errorf("%s: leaves %q when it ends", p.name, got)
		}
	}
	if got := New(80, 24, Limits{}).Undo(); got != nil {
		t.Errorf("no output: undone by %q", got)
	}
}

// A terminal has kitty keyboard flags for each screen.
func TestUndoKeyboard(t *testing.T) {
	tests := []struct{ why, output, undo string }{
		{"pushed twice", "\x1b[>1u\x1b[>5u", "\x1b[<2u"},
		{"popped one of two", "\x1b[>1u\x1b[>5u\x1b[<u", "\x1b[<1u"},
		{"popped both", "\x1b[>1u\x1b[>5u\x1b[<2u", ""},
		{"popped more than there were", "\x1b[=1u\x1b[>1u\x1b[<9u", ""},
		{"set and pushed", "\x1b[=1u\x1b[>5u", "\x1b[<1u\x1b[=0u"},
		{"pushed, set and popped", "\x1b[>1u\x1b[=5u\x1b[<u", ""},
		{"some set, and reset", "\x1b[=1u\x1b[=4;2u\x1b[=5;3u", ""},
		{"some set", "\x1b[=1;1u\x1b[=4;2u\x1b[=1;3u", "\x1b[=0u"},
		{"set to nothing", "\x1b[=1u\x1b[=u", ""},
		{"pushed on the main screen, then the alternate one", "\x1b[>1u\x1b[?1049h", "\x1b[?1049l\x1b[m\x1b[<1u"},
		{"pushed on both", "\x1b[>1u\x1b[?1049h\x1b[>1u\x1b[>1u", "\x1b[<2u\x1b[?1049l\x1b[m\x1b[<1u"},
		{"pushed on the alternate screen, and that left", "\x1b[?1047h\x1b[>1u\x1b[?1047l", ""},
	}
	for _, test := range tests {
		if got := string(observe(test.output).Undo()); got != test.undo {
			t.Errorf("%s: undone by %q, want %q", test.why, got, test.undo)
		}
	}
}

// After any part of a recording, and after a snapshot of it, Undo leaves nothing to undo.
func TestUndoRecordings(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.raw")
	if err != nil || len(files) == 0 {
		t.Fatal("no recordings:", err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	for _, file := range files {
		raw := read(t, file)
		for range 5 {
			s := observe(string(raw[:r.IntN(len(raw)+1)]))
			checkUndo(t, observe(string(s.Snapshot(Snapshot{}))))
			checkUndo(t, s)
		}
	}
}

// checkUndo undoes what is on, and then looks at everything that Undo is about.
func checkUndo(t interface{ Fatalf(string, ...any) }, s *Screen) {
	undo := s.Undo()
	s.Write(undo)
	fresh := New(s.cols, s.rows, Limits{})
	if got := s.Undo(); got != nil {
		t.Fatalf("undone by %q, and then by %q", undo, got)
	}
	switch b, pen := s.buf, s.pen; {
	case s.Alternate(), !b.whole(s.cols), s.charsets != fresh.charsets, s.modes != fresh.modes, s.mouse != fresh.mouse,
		pen != Style{}, !slices.Equal(s.tabs, fresh.tabs), s.shape != 0,
		s.modifyKeys != 0, len(s.colors) > 0, len(s.titles) > 0, b.keyboard.flags != 0, len(b.keyboard.stack) > 0, !s.Ground():
		t.Fatalf("after %q: %s", undo, stateOf(s))
	}
}

// After any output, Undo leaves nothing to undo.
func TestUndoRandom(t *testing.T) {
	sequences := []string{
		"\x1b[?1h", "\x1b[?7l", "\x1b[?25l", "\x1b[?47h", "\x1b[?1047h", "\x1b[?1049h", "\x1b[?1049l", "\x1b[?1000;1006h",
		"\x1b=", "\x1b>", "\x1b(0", "\x1b(B", "\x1b)0", "\x1b*A", "\x1bn", "\x0e", "\x1b[4 q", "\x1b[>4;1m", "\x1b[>4m", "\x1b[20h",
		"\x1b[4h", "\x1b[?6;69h", "\x1b[2;9r", "\x1b[r", "\x1b[2;9s", "\x1b[1;38;5;0m", "\x1b[m", "\x1b]8;;x\a", "\x1b[1\"q", "\x1b7", "\x1b8",
		"\x1b]4;1;red;2;blue\a", "\x1b]11;red\a", "\x1b]2;t\a", "\x1b[9C\x1bH", "\x1b[g", "\x1b[3g", "\x1b[?45h", "\x1b[?12h", "\x1b]0;",
		"\x1b[22;0t", "\x1b[22;1t", "\x1b[22;2t", "\x1b[23;0t", "\x1b[>1u", "\x1b[<u", "\x1b[<2u", "\x1b[=5u", "\x1b[=4;2u", "\x1b[=0u",
		"\x1b[!p", "\x1bc", "text", "\r\n",
	}
	rapid.Check(t, func(t *rapid.T) {
		checkUndo(t, observe(strings.Join(rapid.SliceOf(rapid.SampledFrom(sequences)).Draw(t, "output"), "")))
	})
}

// Some terminals leave modes on after DECSTR, or have several kinds of mouse tracking on at once:
// Undo resets all of them.
func TestUndoUncertain(t *testing.T) {
	all := "\x1b[?1;6;25;66;1000;1049;2004h\x1b[?25l\x1b=\x1b(0\x1b)0\x1b[>4;2m\x1b[4 q\x1b[>1u"
	tests := []struct{ why, output, undo string }{
		{"DECSTR", all + "\x1b[!p", "\x1b[<1u\x1b[?1049l\x1b[ q\x1b[m\x1b[>4m\x1b[?1000l\x1b[?2004l"},
		{"RIS", all + "\x1bc", ""},
		{"two kinds of tracking, and one reset", "\x1b[?1000h\x1b[?1002h\x1b[?1002l", "\x1b[?1000l"},
		{"modes restored to what is not known", "\x1b[?1;1000s\x1b[?1;1000;2004r\x1b[?2004l", "\x1b[?1l\x1b[?1000l"},
		{"an unfinished sequence", "\x1b]0;ti", "\x18"},
		{"the same, and a mode", "\x1b[?2004h\x1b[3", "\x18\x1b[?2004l"},
		{"tab stops", "\x1b[9G\x1b[g\x1b[12G\x1bH", "\x1b7\x1b[9G\x1bH\x1b[12G\x1b[g\x1b8"},
	}
	for _, test := range tests {
		if got := string(observe(test.output).Undo()); got != test.undo {
			t.Errorf("%s: undone by %q, want %q", test.why, got, test.undo)
		}
	}
}
