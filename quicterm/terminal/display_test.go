package terminal

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// words are messages that name their arguments.
type words struct{}

func (words) Title(l client.LinkState) string {
	return fmt.Sprintf("title %v %d %d", l.State, l.Attempts, l.Backlog)
}
func (words) Gap(g session.Gap, skipped bool) string {
	return fmt.Sprintf("gap %d-%d %d %v", g.From, g.To, g.Bytes, skipped)
}
func (words) Status(st client.Status) string { return "status of " + st.Name }
func (words) Help(escape byte) string        { return "help " + string(escape) }
func (words) InputFull(waiting int) string   { return fmt.Sprintf("full with %d", waiting) }
func (words) InputDropped(n int) string      { return fmt.Sprintf("dropped %d", n) }

// live returns the display of a terminal after the replay, and its output, empty.
func live() (*display, *bytes.Buffer) {
	out := new(bytes.Buffer)
	d := newDisplay(out, words{})
	d.begin(wire.Size{Cols: 80, Rows: 24}, true)
	d.endReplay()
	out.Reset()
	return d, out
}

func TestTitle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, out := live()
		wantOut := func(why, want string) {
			t.Helper()
			synctest.Wait()
			if got := out.String(); got != want {
				t.Errorf("%s: wrote %q, want %q", why, got, want)
			}
			out.Reset()
		}
		set := func(state migrate.State, attempts int) {
			d.setLink(client.LinkState{State: state, Since: time.Now(), Attempts: attempts})
		}
		d.Write([]byte("\x1b]2;vim\a"))
		out.Reset()

		set(migrate.Suspect, 0)
		time.Sleep(titleAfter / 2)
		set(migrate.Live, 0)
		time.Sleep(time.Hour)
		wantOut("a short outage", "")

		set(migrate.Offline, 1)
		time.Sleep(titleAfter)
		wantOut("a second without contact", "\x1b[22;2t\x1b]2;title offline 1 0\x1b\\")
		set(migrate.Live, 0)
		wantOut("contact again", "\x1b[23;2t\x1b]2;vim\a")

		set(migrate.Offline, 1)
		d.Write([]byte("\x1b[3"))
		out.Reset()
		time.Sleep(titleAfter)
		d.print("text")
		wantOut("inside a sequence of the program", "")
		d.Write([]byte("1m"))
		wantOut("after the sequence", "1m\r\n[qt: text]\r\n\x1b[22;2t\x1b]2;title offline 1 0\x1b\\")
		d.restore(false)
		wantOut("the end", "\x1b[23;2t\x1b]2;vim\a\x1b[m\x1b[23;0t")
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
	d := newDisplay(&out, words{})
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
	d.showGap(session.Gap{From: 2, To: 3, Bytes: 9})
	d.skip()
	d.showGap(session.Gap{From: 5, To: 5, Bytes: 1})
	want := "a\x1b[1\x18\r\n[qt: gap 2-3 9 false]\r\n\r\n[qt: gap 5-5 1 true]\r\n"
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
			"\x1b[?1049l\x1b7\x1b[r\x1b8\x1b[?25h\x1b[m\x1b[?1l\x1b>\x1b[>4m\x1b[?1000l\x1b[?1006l\x1b[?2004l" + popTitle + popTitle + "\r\n\x1b[J",
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
	d := newDisplay(&out, words{})
	d.begin(wire.Size{Cols: 80, Rows: 24}, false)
	d.endReplay()
	d.Write([]byte("\x1b[1mtext"))
	d.setLink(client.LinkState{State: migrate.Live, Backlog: 1 << 20})
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
		{"a\x1b[", "6nb", "a\x1b[\x1b\\b"},
		{"a\x1b[3", "1mb\x1b[c", "a\x1b[31mb"},
		{"a\x1b]2;t", "t\ab", "a\x1b]2;tt\ab"},
		{"a\x1b]11;", "?\ab", "a\x1b]11;\x1b\\b"},
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
