package screen

import (
	"strings"
	"testing"
)

// What the shells of other terminals print around a command, as recorded with the names and values shortened.
var shellRecordings = []struct{ shell, output, cwd string }{
	{"kitty, bash", "\x1b]133;D;0\a\x1b]133;A;redraw=0\a\x1b]2;~\a$ \x1b[5 q" + "make test" + "\x1b[0 q\r\n" +
		"\x1b]2;make test\a\x1b]133;C;cmdline=make\\ test\aok\r\n\x1b]133;D;2\a\x1b]7;kitty-shell-cwd://h/w\a" +
		"\x1b]133;A;redraw=0\a$ ", "/w"},
	{"kitty, zsh", "\x1b]133;A\a% \x1b[K\x1b[?2004h" + "make test" + "\x1b[?2004l\r\r\n\x1b]133;C;cmdline=make\\ test\aok\r\n" +
		"\x1b]133;D;2\a\x1b]7;kitty-shell-cwd://h/w\a\x1b]133;A\a% ", "/w"},
	{"ghostty, bash", "\x1b]133;A;redraw=last;cl=line;aid=7\a\x1b]7;kitty-shell-cwd://h/w\a$ \x1b]133;B\a" + "make test" +
		"\r\n\x1b]133;C\aok\r\n\x1b]133;D;2;aid=7\a\x1b]133;A;aid=7\a$ \x1b]133;B\a", "/w"},
	{"ghostty, zsh", "\x1b]133;A;cl=line\a\x1b]133;P;k=i\a% \x1b]133;B\a\x1b[K" + "make test" +
		"\r\r\n\x1b]133;C\aok\r\n\x1b]133;D;2\a\x1b]7;kitty-shell-cwd://h/w\a\x1b]133;A;cl=line\a% \x1b]133;B\a", "/w"},
	{"VS Code, bash", "\x1b]633;P;IsWindows=False\a\x1b]633;P;ContinuationPrompt=\\x3e \a\x1b]633;A\a$ \x1b]633;B\a" + "make test" +
		"\r\n\x1b]633;E;make test;c7c0\a\x1b]633;C\aok\r\n\x1b]633;D;2\a\x1b]633;P;Cwd=/w\a\x1b]633;A\a$ \x1b]633;B\a", "/w"},
	{"fish 4", "\x1b]7;file://h/w\a\x1b]133;A;special_key=1\a> \x1b[K\x1b[92mmake\x1b[m test" +
		"\r\n\x1b]133;C;cmdline_url=make%20test\aok\r\n\x1b]133;D;2\a\x1b]7;file://h/w\a\x1b]133;A;special_key=1\a> ", "/w"},
	{"iTerm2, zsh", "\x1b]1337;RemoteHost=ann@h\a\x1b]1337;CurrentDir=/w\a\x1b]1337;ShellIntegrationVersion=14;shell=zsh\a" +
		"\x1b]133;D;0\a\x1b]133;A\a% \x1b]133;B\a" + "make test" + "\x1b[?2004l\r\r\n\x1b]133;C;\aok\r\n" +
		"\x1b]133;D;2\a\x1b]1337;RemoteHost=ann@h\a\x1b]1337;CurrentDir=/w\a\x1b]133;A\a% \x1b]133;B\a", "/w"},
	{"quicterm, bash", "\x1b]7;file://h/w\a\x1b]133;A\a$ \x1b]133;B\a" + "make test" +
		"\r\n\x1b]133;C\aok\r\n\x1b]133;D;2\a\x1b]7;file://h/w\a\x1b]133;A\a$ \x1b]133;B\a", "/w"},
}

// The marks of other terminals' shells tell the command, its place and its status, also after a snapshot, which has
// them as OSC 133 where they were: the terminal jumps between prompts by those.
func TestRecordings(t *testing.T) {
	for _, r := range shellRecordings {
		t.Run(r.shell, func(t *testing.T) {
			s := New(40, 6, Limits{})
			s.Write([]byte("\r\n" + r.output))
			if got, want := s.Ended(), (Ended{"make test", 2, 1}); got != want {
				t.Errorf("ended: %+v, want %+v", got, want)
			}
			const want = `1 2 3 status 2 "ok\n"`
			if got := told(s); got != want {
				t.Errorf("%s, want %s", got, want)
			}
			snapshot := s.Snapshot(Snapshot{Lines: 100})
			again := New(40, 6, Limits{})
			again.Write(snapshot)
			if got := told(again); got != want {
				t.Errorf("after a snapshot: %s, want %s", got, want)
			}
			for n, mark := range map[int]string{2: "\x1b]133;A", 1: "\x1b]133;D;2"} {
				if got := strings.Count(string(snapshot), mark); got != n {
					t.Errorf("%d times %q in the snapshot %q", got, mark, snapshot)
				}
			}
			if _, path := again.Directory(); path != r.cwd {
				t.Errorf("directory %q, want %q", path, r.cwd)
			}
		})
	}
}

// A command is what was typed between its marks, however it is edited and wherever its rows are meanwhile.
func TestEnded(t *testing.T) {
	const prompt, run, end = "\x1b]133;A\a$ \x1b]133;B\a", "\r\n\x1b]133;C\a", "\x1b]133;D;0\a"
	resize := func(cols int) func(*Screen) { return func(s *Screen) { s.Resize(cols, 5) } }
	write := func(text string) func(*Screen) { return func(s *Screen) { s.Write([]byte(text)) } }
	for _, test := range []struct {
		why   string
		steps []func(*Screen)
		want  Ended
	}{
		{"none", []func(*Screen){write(prompt + "ls")}, Ended{}},
		{"it runs", []func(*Screen){write(prompt + "ls" + run)}, Ended{}},
		{"another one runs", []func(*Screen){write(prompt + "a" + run + end + prompt + "b" + run)}, Ended{"a", 0, 1}},
		{"it is edited", []func(*Screen){write(prompt + "lx\bs -l" + run + end)}, Ended{"ls -l", 0, 1}},
		{"it wraps", []func(*Screen){write(prompt + "echo 0123456789" + run + end)}, Ended{"echo 0123456789", 0, 1}},
		{"the prompt wraps", []func(*Screen){write("\x1b]133;A\a0123456789$ \x1b]133;B\als" + run + end)}, Ended{"ls", 0, 1}},
		{"several lines", []func(*Screen){write(prompt + "for\r\n> done" + run + end)}, Ended{"for\n> done", 0, 1}},
		{"it scrolls", []func(*Screen){write("\n\n\n\n" + prompt + "1\r\n2\r\n3\r\n4\r\n5\r\n6" + run + end)}, Ended{"1\n2\n3\n4\n5\n6", 0, 1}},
		{"the size changes", []func(*Screen){write(prompt + "echo 01"), resize(6), write("\r\x1b[J" + prompt + "echo 0123"),
			resize(30), write("\x1b[A\r\x1b[J" + prompt + "echo 0123" + run + end)}, Ended{"echo 0123", 0, 1}},
		{"the screen is cleared and drawn again",
			[]func(*Screen){write(prompt + "l\x1b[H\x1b[2J" + prompt + "ls" + run + end)}, Ended{"ls", 0, 1}},
		{"the screen is cleared meanwhile", []func(*Screen){write(prompt + "clear" + run + "\x1b[H\x1b[2J" + end)}, Ended{"clear", 0, 1}},
		{"the terminal is reset meanwhile", []func(*Screen){write(prompt + "reset" + run + "\x1bc" + end)}, Ended{"reset", 0, 1}},
		{"the terminal is reset before", []func(*Screen){write(prompt + "ls\x1bcls" + run + end)}, Ended{"", 0, 1}},
		{"no mark where it begins", []func(*Screen){write("\x1b]133;A\a$ ls" + run + end)}, Ended{"", 0, 1}},
		{"no mark where it ends", []func(*Screen){write(prompt + "ls" + run + prompt)}, Ended{"ls", -1, 1}},
		{"two hooks", []func(*Screen){write(prompt + "ls" + run + end + "\x1b]133;D;3\a")}, Ended{"ls", 0, 1}},
		{"a shell on the alternate screen", []func(*Screen){
			write(prompt + "tmux" + run + "\x1b[?1049h" + prompt + "x" + run + "\x1b]633;E;y\a" + end + "\x1b[?1049l" + end),
		}, Ended{"tmux", 0, 1}},
		{"it is very long", []func(*Screen){write(prompt + strings.Repeat("宽", 4000) + run + end)}, Ended{"", 0, 1}},
		{"it is long", []func(*Screen){resize(200), write(prompt + strings.Repeat("é", 2000) + run + end)},
			Ended{strings.Repeat("é", maxLine/2), 0, 1}},
	} {
		s := New(10, 5, Limits{})
		for _, step := range test.steps {
			step(s)
		}
		if got := s.Ended(); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.why, got, test.want)
		}
	}
}
