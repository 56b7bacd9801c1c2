package terminal

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// typeKeys types bytes that are all in one frame.
func typeKeys(d *display, b []byte, frame uint64) {
	if p := d.typing(); p != nil {
		p.typedLocked(b, len(b), frame)
		p.mu.Unlock()
	}
}

// live returns the display of a terminal after the replay, and its output, empty.
func live() (*display, *bytes.Buffer) {
	out := new(bytes.Buffer)
	d := newDisplay(out, Config{})
	d.begin(wire.Size{Cols: 80, Rows: 24}, true, nil)
	d.endReplay()
	out.Reset()
	return d, out
}

// wantWritten returns a function that compares what was written since it was called last.
func wantWritten(t *testing.T, d *display, out *bytes.Buffer) func(why, want string) {
	return func(why, want string) {
		t.Helper()
		synctest.Wait()
		d.mu.Lock() // timers write as well
		defer d.mu.Unlock()
		if got := out.String(); got != want {
			t.Errorf("%s: wrote %q, want %q", why, got, want)
		}
		out.Reset()
	}
}

// A notice is a line, or in the title for a while if there is no place for a line.
func TestNotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, out := live()
		wantOut := wantWritten(t, d, out)
		d.notice("first")
		wantOut("at a prompt", "\r\n[qt: first]\r\n")
		d.Write([]byte("\x1b]2;vim\a\x1b[?1049h"))
		wantOut("of the editor", "\x1b]2;vim\a\x1b[?1049h")
		d.notice("second")
		wantOut("in an editor", "\x1b[22;2t\x1b]2;qt: second\x1b\\")
		time.Sleep(noticeTime / 2)
		d.setLink(client.LinkState{State: client.Offline, Since: time.Now()})
		wantOut("without contact", "\x1b]2;qt: second\x1b\\")
		time.Sleep(noticeTime / 2)
		wantOut("later", "\x1b]2;"+d.cfg.titleText(d.link)+"\x1b\\")
		d.setLink(client.LinkState{State: client.Live, Since: time.Now()})
		wantOut("contact again", "\x1b[23;2t\x1b]2;vim\x1b\\")
		d.notice("third")
		wantOut("in an editor again", "\x1b[22;2t\x1b]2;qt: third\x1b\\")
		time.Sleep(noticeTime)
		wantOut("after the notice", "\x1b[23;2t\x1b]2;vim\x1b\\")
		d.Write([]byte("\x1b[?1049l"))
		wantOut("of the editor", "\x1b[?1049l")
		d.setTitle("what has ended", textTime)
		wantOut("in the title, at a prompt too", "\x1b[22;2t\x1b]2;qt: what has ended\x1b\\")
		time.Sleep(textTime)
		wantOut("after that", "\x1b[23;2t\x1b]2;vim\x1b\\")
		d.restore(false)
	})
}

func TestTitle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, out := live()
		wantOut := wantWritten(t, d, out)
		set := func(state client.State, attempts int) {
			d.setLink(client.LinkState{State: state, Since: time.Now(), Attempts: attempts})
		}
		d.Write([]byte("\x1b]2;vim\a"))
		out.Reset()

		set(client.Suspect, 0)
		time.Sleep(titleAfter / 2)
		set(client.Live, 0)
		time.Sleep(time.Hour)
		wantOut("a short outage", "")

		set(client.Offline, 1)
		time.Sleep(titleAfter)
		wantOut("a second without contact", "\x1b[22;2t\x1b]2;"+d.cfg.titleText(d.link)+"\x1b\\")
		set(client.Live, 0)
		wantOut("contact again", "\x1b[23;2t\x1b]2;vim\x1b\\")

		set(client.Offline, 1)
		d.Write([]byte("\x1b[3"))
		out.Reset()
		time.Sleep(titleAfter)
		d.print("text")
		wantOut("inside a sequence of the program", "")
		d.Write([]byte("1m"))
		wantOut("after the sequence", "1m\r\n[qt: text]\r\n\x1b[22;2t\x1b]2;"+d.cfg.titleText(d.link)+"\x1b\\")
		d.restore(false)
		wantOut("the end", "\x1b[23;2t\x1b]2;vim\x1b\\\x1b[m\x1b[23;0t")
	})
}

// Text waits for the end of a control sequence, but is bounded.
func TestPendingText(t *testing.T) {
	d, out := live()
	d.Write([]byte("\x1b]0;never ended"))
	for range 100 {
		d.print(strings.Repeat("x", 1000))
	}
	if len(d.pending) > maxPending+2000 {
		t.Errorf("%d bytes wait", len(d.pending))
	}
	out.Reset()
	d.Write([]byte("\a"))
	if !strings.Contains(out.String(), "[qt: xx") {
		t.Error("the text was not written after the sequence")
	}
}

func TestReplayHasNoQueries(t *testing.T) {
	var out bytes.Buffer
	d := newDisplay(&out, Config{})
	d.Write([]byte("old\x1b[c\x1b[6"))
	d.Write([]byte("n \x1b[1"))
	d.endReplay()
	d.Write([]byte("mnew\x1b[c"))
	if got, want := out.String(), "old \x1b[1mnew\x1b[c"; got != want {
		t.Errorf("showed %q, want %q", got, want)
	}
}

func TestGap(t *testing.T) {
	d, out := live()
	d.Write([]byte("a\x1b[1"))
	d.showGap(client.Gap{From: 2, To: 3, Bytes: 9})
	d.skip()
	d.showGap(client.Gap{From: 5, To: 5, Bytes: 1})
	want := "a\x1b[1\x18\r\n[qt: 9 bytes of output lost, the server has kept no more (frames 2 to 3)]\r\n\r\n[qt: 1 bytes of output skipped (frames 5 to 5)]\r\n"
	if got := out.String(); got != want {
		t.Errorf("showed %q, want %q", got, want)
	}
}

// The end of a session undoes what the program changed, in an order in which the cursor
// ends at a place for a message.
func TestRestore(t *testing.T) {
	const popTitle = "\x1b[23;0t"
	tests := []struct {
		why, output, want string
		newLine           bool
	}{
		{"nothing shown", "", popTitle, false},
		{"nothing shown, and a message", "", popTitle + "\x1b[J", true},
		{"a program that has ended", "logout\r\n", popTitle + "\x1b[J", true},
		{"a prompt", "$ ", popTitle + "\r\n\x1b[J", true},
		{"the title of a shell", "\x1b]0;host\a$ ", popTitle + "\r\n\x1b[J", true},
		{
			"vim, drawn over half of the screen",
			"\x1b[?1049h\x1b[22;0;0t\x1b[>4;2m\x1b[?1h\x1b=\x1b[?2004h\x1b[1;20r\x1b[?1006;1000h\x1b[?25l\x1b]2;file\a\x1b[12;1H\x1b[31mtext",
			"\x1b[?1049l\x1b7\x1b[r\x1b8\x1b[?25h\x1b[m\x1b[?1l\x1b>\x1b[>4m\x1b[?1000l\x1b[?1006l\x1b[?2004l" + popTitle + popTitle + "\x1b[J",
			true,
		},
		{
			"a sequence without an end",
			"\x1b[?1049h\x1b[?25l\x1b]0;never ended",
			"\x18\x1b[?1049l\x1b[?25h\x1b[m" + popTitle,
			false,
		},
	}
	for _, test := range tests {
		d, out := live()
		d.Write([]byte(test.output))
		out.Reset()
		d.restore(test.newLine)
		if got := out.String(); got != test.want {
			t.Errorf("%s: wrote %q, want %q", test.why, got, test.want)
		}
	}
}

// Output to a file has no control sequences of ours.
func TestNoTerminal(t *testing.T) {
	var out bytes.Buffer
	d := newDisplay(&out, Config{})
	d.begin(wire.Size{Cols: 80, Rows: 24}, false, nil)
	d.endReplay()
	d.Write([]byte("\x1b[1mtext"))
	d.setLink(client.LinkState{State: client.Live, Backlog: 1 << 20})
	d.restore(true)
	if got, want := out.String(), "\x1b[1mtext"; got != want {
		t.Errorf("wrote %q, want %q", got, want)
	}
}

// Queries of old output are not shown, even if they began before it. Those before and after
// are.
func TestReplayWithinOutput(t *testing.T) {
	for _, test := range []struct{ live, old, want string }{
		{"a\x1b[6n", "b\x1b[6nc", "a\x1b[6nbc"},
		{"a\x1b[", "6nb", "a\x1b[\x18b"},
		{"a\x1b[3", "1mb\x1b[c", "a\x1b[3\x18\x1b[31mb"},
		{"a\x1b]2;t", "t\ab", "a\x1b]2;t\x18\x1b]2;tt\x1b\\b"},
		{"a\x1b]11;", "?\ab", "a\x1b]11;\x18b"},
		{"\x1b_Gi=1;" + strings.Repeat("A", 5000), "A\x1b\\b", "\x1b_Gi=1;" + strings.Repeat("A", 5001) + "\x1b\\b"},
	} {
		d, out := live()
		d.Write([]byte(test.live))
		d.beginReplay()
		d.Write([]byte(test.old))
		d.endReplay()
		d.Write([]byte("\x1b[6n"))
		if got := out.String(); got != test.want+"\x1b[6n" {
			t.Errorf("%.20q, then old %q: shown %.60q, want %.60q", test.live, test.old, got, test.want)
		}
	}
}

// texts returns the rows of a terminal: those of the scrollback and of the screen.
func texts(t *testing.T, terminal *screen.Screen) (scrollback, rows []string) {
	t.Helper()
	type row struct{ Runs [][]any }
	var dump struct{ Scrollback, Screen []row }
	b, err := json.Marshal(terminal.Dump())
	if err == nil {
		err = json.Unmarshal(b, &dump)
	}
	if err != nil {
		t.Fatal(err)
	}
	text := func(rows []row) (texts []string) {
		for _, r := range rows {
			text := ""
			for _, run := range r.Runs {
				text += run[0].(string)
			}
			texts = append(texts, strings.TrimRight(text, " "))
		}
		return texts
	}
	return text(dump.Scrollback), text(dump.Screen)
}

// A snapshot takes the place of what is on the terminal. That moves into its scrollback, without
// empty lines.
func TestSnapshot(t *testing.T) {
	const snapshot = "$ ls\r\nfile\r\n$ vim\x1b[?1049h\x1b[H\x1b[31mtext\x1b[1"
	full := slices.Repeat([]string{"line"}, 100)
	for _, test := range []struct {
		why, before string
		screen      []string // what moves into the scrollback
		lost        []string // and if there is a line of ours
	}{
		{"a new window", "", nil, []string{""}},
		{"a prompt", "$ qt\r\n", []string{"$ qt"}, []string{"$ qt", ""}},
		{"an unfinished line", "$ qt\r\n$ ls", []string{"$ qt", "$ ls"}, []string{"$ qt", "$ ls"}},
		{"a full window", strings.Repeat("line\r\n", 100), full, append(full[:100:100], "")},
		{"a program on the alternate screen", "$ qt\r\n$ less\r\n\x1b[?1049h\x1b[5;10rtext",
			[]string{"$ qt", "$ less"}, []string{"$ qt", "$ less", ""}},
		{"a title without an end", "$ qt\r\n\x1b]2;ti", []string{"$ qt"}, []string{"$ qt", ""}},
	} {
		for _, lost := range []bool{false, true} {
			terminal := screen.New(80, 24, screen.Limits{})
			d := newDisplay(terminal, Config{})
			d.begin(wire.Size{Cols: 80, Rows: 24}, true, nil)
			d.Write([]byte(test.before))
			want := test.screen
			if lost {
				want = append(test.lost, "[qt: 3 bytes of output lost, the server has kept no more (frames 1 to 2)]")
				d.showGap(client.Gap{From: 1, To: 2, Bytes: 3, Snapshot: []byte(snapshot)})
			} else {
				d.showScreen([]byte(snapshot), false)
			}
			d.Write([]byte("mb"))
			_, rows := texts(t, terminal)
			if rows[0] != "textb" || !terminal.Alternate() {
				t.Errorf("%s, lost %v: the screen begins with %q, want vim", test.why, lost, rows[0])
			}
			d.restore(true)
			scrolled, rows := texts(t, terminal)
			if !slices.Equal(scrolled, want) {
				t.Errorf("%s, lost %v: scrolled %q, want %q", test.why, lost, scrolled, want)
			}
			if !slices.Equal(rows[:4], []string{"$ ls", "file", "$ vim", ""}) || terminal.Alternate() {
				t.Errorf("%s, lost %v: then the screen begins with %q", test.why, lost, rows[:4])
			}
		}
	}
}

// What is no terminal gets the program's output alone, also if that ends within a control sequence.
func TestPipeGetsOnlyOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, aside bytes.Buffer
		d := newDisplay(&out, Config{})
		d.aside = &aside
		d.begin(wire.Size{Cols: 80, Rows: 24}, false, nil)
		d.endReplay()
		d.notice("joined")
		d.setLink(client.LinkState{State: client.Offline, Since: time.Now().Add(-time.Hour)})
		d.Write([]byte("one\r\n\x1b]2;title"))
		d.showGap(client.Gap{From: 2, To: 3, Bytes: 100})
		d.Write([]byte("two\x1b["))
		d.restore(true)
		if got := out.String(); got != "one\r\n\x1b]2;titletwo\x1b[" {
			t.Errorf("the output is %q", got)
		}
		if got := aside.String(); got != "qt: joined\r\nqt: 100 bytes of output lost, the server has kept no more (frames 2 to 3)\r\n" {
			t.Errorf("beside it is %q", got)
		}
	})
}

// A question for the clipboard does not reach the terminal, wherever it is cut by the start or the end of a replay, a
// snapshot or a gap.
func TestClipboardIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const read = "\x1b]52;c;?\a"
		for n := range len(read) + 1 {
			for why, between := range map[string]func(*display){
				"live":         func(*display) {},
				"replay":       (*display).beginReplay,
				"replayed":     func(d *display) { d.beginReplay(); d.endReplay() },
				"window":       func(d *display) { d.beginWindow(); d.endWindow(nil, false) },
				"gap":          func(d *display) { d.showGap(client.Gap{From: 2, To: 3, Bytes: 100}) },
				"gap and more": func(d *display) { d.showGap(client.Gap{Snapshot: []byte("new" + read[:n])}) },
				"screen":       func(d *display) { d.showScreen([]byte("new"+read+read[:n]), true) },
				"old screen": func(d *display) {
					d.beginReplay()
					d.showScreen([]byte("new"+read+read[:n]), false)
					d.endReplay()
				},
			} {
				d, out := live()
				d.Write([]byte("a" + read[:n]))
				between(d)
				d.Write([]byte(read[n:] + "\x1b]52;c;aGk=\ab"))
				d.endReplay()
				d.restore(false)
				got := out.String()
				if strings.Contains(got, "\x1b]52;c;?") {
					t.Errorf("%s after %d bytes: wrote %q", why, n, got)
				}
				if !strings.Contains(got, "52;c;aGk=") {
					t.Errorf("%s after %d bytes: what is copied is lost: %q", why, n, got)
				}
			}
		}
	})
}
