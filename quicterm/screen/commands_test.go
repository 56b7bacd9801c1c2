package screen

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// shell returns what a shell with marks prints for commands, each with its output and its status.
func shell(commands ...string) string {
	var b strings.Builder
	for _, c := range commands {
		command, rest, _ := strings.Cut(c, "|")
		output, status, _ := strings.Cut(rest, "|")
		fmt.Fprintf(&b, "\x1b]133;A\a$ \x1b]133;B\a%s\r\n\x1b]133;C\a%s\x1b]133;D;%s\a", command, output, status)
	}
	return b.String() + "\x1b]133;A\a$ \x1b]133;B\a"
}

// told returns the commands of a screen: their rows, status and output.
func told(s *Screen) string {
	var list []string
	for _, c := range s.Commands() {
		text := fmt.Sprintf("%d %d %d", c.Prompt, c.Output, c.End)
		if c.Status >= 0 {
			text += fmt.Sprint(" status ", c.Status)
		}
		if c.Running {
			text += " runs"
		}
		var lines []string
		for _, line := range s.MainText(c.Output, c.End, c.Column) {
			lines = append(lines, line.Text())
		}
		list = append(list, fmt.Sprintf("%s %q", text, strings.Join(lines, "\n")))
	}
	return strings.Join(list, "; ")
}

func TestCommands(t *testing.T) {
	for _, test := range []struct{ why, output, want string }{
		{"none", "$ ", ""},
		{"a prompt alone", shell(), ""},
		{"two", shell("a|b\r\nc\r\n|0", "d|e\r\n|3"), `-1 0 2 status 0 "b\nc\n"; 2 3 4 status 3 "e\n"`},
		{"no output", shell("cd||0"), `0 1 1 status 0 ""`},
		{"a last line without its end", shell("printf|hi|0"), `0 1 1 status 0 "hi"`},
		{"a line that wraps", shell("a|0123456789  0123\r\n|0"), `0 1 3 status 0 "0123456789  0123\n"`},
		{"in the scrollback",
			shell("a|1\r\n2\r\n3\r\n|0", "b|4\r\n5\r\n|9"),
			`-3 -2 1 status 0 "1\n2\n3\n"; 1 2 4 status 9 "4\n5\n"`},
		{"one runs", shell() + "a\r\n\x1b]133;C\a1\r\n2", `0 1 2 runs "1\n2"`},
		{"one draws on the alternate screen",
			shell() + "a\r\n\x1b]133;C\a1\r\n\x1b[?1049h\x1b[H\x1b]133;A\afull", `0 1 2 runs "1\n"`},
		{"no status", shell("a|b\r\n|"), `0 1 2 "b\n"`},
		{"two hooks of a shell", shell("a|b\r\n|2") + "\r\x1b]133;D;0\a", `0 1 2 status 2 "b\n"`},
		{"no end", strings.ReplaceAll(shell("a|b\r\n|"), "\x1b]133;D;\a", ""), `0 1 2 "b\n"`},
		{"an empty line and a line given up",
			shell() + "\r\n" + shell() + "x^C\r\n" + shell("a|b\r\n|0"), `2 3 4 status 0 "b\n"`},
		{"all is cleared", shell("a|b\r\n|0", "clear|\x1b[H\x1b[2J|0"), ""},
		{"what is below is cleared", shell("a|b\r\n|0", "c|d\r\n|0") + "\x1b[2;2H\x1b[J", `0 1 1 "b"`},
		{"VS Code", strings.ReplaceAll(shell("a|b\r\n|0"), "]133", "]633"), `0 1 2 status 0 "b\n"`},
	} {
		t.Run(test.why, func(t *testing.T) {
			s := New(10, 5, Limits{})
			s.Write([]byte(test.output))
			if got := told(s); got != test.want {
				t.Errorf("%s\nwant %s", got, test.want)
			}
			again := New(10, 5, Limits{})
			again.Write(s.Snapshot(Snapshot{Lines: 100}))
			if s.marked == again.marked && told(again) != test.want {
				t.Errorf("after a snapshot: %s\nwant %s", told(again), test.want)
			}
		})
	}
}

// Wrapping lines anew moves the marks with their lines.
func TestMarksOfResizedScreen(t *testing.T) {
	s := New(10, 5, Limits{})
	s.Write([]byte(shell("echo|0123456789abcdef\r\n|0", "printf|0123456789ab|1") + "\r\n"))
	for _, test := range []struct {
		cols int
		want string
	}{
		{7, `-4 -3 0 status 0 "0123456789abcdef\n"; 0 2 3 status 1 "0123456789ab"`},
		{30, `0 1 2 status 0 "0123456789abcdef\n"; 2 3 3 status 1 "0123456789ab"`},
		{10, `-2 -1 1 status 0 "0123456789abcdef\n"; 1 2 3 status 1 "0123456789ab"`},
	} {
		s.Resize(test.cols, 5)
		if got := told(s); got != test.want {
			t.Errorf("%d columns: %s\nwant %s", test.cols, got, test.want)
		}
	}
}

// The marks of rows that leave the scrollback are forgotten with them.
func TestMarksAreBounded(t *testing.T) {
	s := New(10, 5, Limits{Lines: 10})
	s.Write([]byte(shell(strings.Split(strings.Repeat("a|b\r\n|0 ", 1000), " ")[:1000]...)))
	if n := len(s.Commands()); n != 7 {
		t.Errorf("%d commands in 15 rows", n)
	}
	s.ClearHistory()
	if n := len(s.Commands()); n != 2 {
		t.Errorf("%d commands in 5 rows", n)
	}
}

// A snapshot has the marks where they are, whatever is printed around them.
func TestSnapshotOfMarks(t *testing.T) {
	parts := []string{
		"x", "text ", "\r\n", "\r\n", "0123456789", "宽", "\x1b[K", "\x1b[J", "\x1b[2J", "\x1b[H", "\x1b[3G",
		"\x1b[44m", "\x1b[m", "\x1b[2X",
		"\x1b]133;A\a", "\x1b]133;B\a", "\x1b]133;C\a", "\x1b]133;D\a", "\x1b]133;D;3\a", "\x1b[?1049h", "\x1b[?1049l",
	}
	seed := chosenSeed()
	for i := range 3000 {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		var b []byte
		for range r.IntN(40) {
			b = append(b, parts[r.IntN(len(parts))]...)
		}
		checkSnapshot(t, 2+r.IntN(12), 2+r.IntN(6), b, r.IntN(len(b)+1))
	}
}

func TestDirectory(t *testing.T) {
	s := New(10, 5, Limits{})
	for _, test := range []struct{ output, host, path string }{
		{"", "", ""},
		{"\x1b]7;file://server/home/an%20na\a", "server", "/home/an na"},
		{"\x1b]1337;CurrentDir=/tmp/a;b\a", "server", "/tmp/a;b"},
		{"\x1b]1337;RemoteHost=anna@other\a", "other", "/tmp/a;b"},
		{"\x1b]633;P;Cwd=/a\\x3bb\\\\c\a", "other", "/a;b\\c"},
		{"\x1b]633;P;HasRichCommandDetection=True\a\x1b]1337;File=:eA==\a\x1b]633;E;ls\a", "other", "/a;b\\c"},
		{"\x1b]7;kitty-shell-cwd://h/x\a", "h", "/x"},
		{"\x1b]7;nothing\a", "", ""},
	} {
		s.Write([]byte(test.output))
		if host, path := s.Directory(); host != test.host || path != test.path {
			t.Errorf("after %q: %q on %q, want %q on %q", test.output, path, host, test.path, test.host)
		}
	}
}
