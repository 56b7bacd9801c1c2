package terminal

import (
	"bytes"
	"fmt"
	"github.com/quicterm/quicterm/quicterm/client"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A sharing is client 2 of a session, with its terminal, and the screen of the session.
type sharing struct {
	t       *testing.T
	v       *view
	out     *bytes.Buffer
	sees    *screen.Screen // the terminal
	session *screen.Screen
	sizing  wire.Sizing
}

func share(t *testing.T, sizing wire.Sizing, own wire.Size) *sharing {
	d, out := live()
	d.setSize(own)
	s := &sharing{
		t: t, v: newView(d, '~'), out: out, sizing: sizing,
		sees:    screen.New(int(own.Cols), int(own.Rows), screen.Limits{}),
		session: screen.New(int(sizing.Cols), int(sizing.Rows), screen.Limits{}),
	}
	t.Cleanup(s.v.stop)
	s.sees.Write([]byte("$ qt attach\r\n"))
	s.v.begin(2, sizing, own, true)
	s.v.replayed()
	return s
}

func (s *sharing) print(format string, args ...any) {
	b := fmt.Appendf(nil, format, args...)
	s.session.Write(b)
	s.v.Write(b)
}

// resized gives the session another size or owner. With a snapshot, the holder sends the screen anew.
func (s *sharing) resized(sizing wire.Sizing, snapshot bool) {
	s.sizing = sizing
	s.session.Resize(int(sizing.Cols), int(sizing.Rows))
	s.v.resized(sizing)
	if snapshot {
		s.v.began(s.session.Snapshot(screen.Snapshot{}))
	}
}

// resize changes the size of the terminal.
func (s *sharing) resize(size wire.Size) {
	s.read()
	s.sees.Resize(int(size.Cols), int(size.Rows))
	s.v.resize(size)
}

// read lets the terminal show all that was written.
func (s *sharing) read() {
	time.Sleep(2 * drawAfter)
	synctest.Wait()
	s.sees.Write(s.out.Bytes())
	s.out.Reset()
}

// want compares the terminal with the part of the session's screen from a column and a row on, and says whether
// it is drawn.
func (s *sharing) want(why string, drawn bool, x, y int) {
	s.t.Helper()
	s.read()
	if (s.v.window != nil) != drawn {
		s.t.Errorf("%s: drawn is %v", why, s.v.window != nil)
	}
	cols, height := s.sees.Size()
	sessionCols, rows := s.session.Size()
	if drawn && (rows > height || sessionCols > cols) {
		height--
	}
	for r := range min(height, rows-y) {
		text := []rune(strings.TrimRight(s.session.Row(y+r).Text(), " "))
		text = text[min(x, len(text)):]
		want := strings.TrimRight(string(text[:min(cols, len(text))]), " ")
		if got := strings.TrimRight(s.sees.Row(r).Text(), " "); got != want {
			s.t.Errorf("%s: row %d is %q, want %q", why, r, got, want)
		}
	}
	cx, cy := s.session.Cursor()
	gotX, gotY := s.sees.Cursor()
	if s.session.CursorHidden() {
		return
	}
	if gotX != min(cx, sessionCols-1)-x && gotX != cx-x || gotY != cy-y {
		s.t.Errorf("%s: the cursor is at %d, %d, want %d, %d", why, gotX, gotY, cx-x, cy-y)
	}
}

// A client of another size than the session's sees a window, never output that is for another width; one of
// the same size and the owner see the output itself.
func TestView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		large, small := wire.Size{Cols: 60, Rows: 20}, wire.Size{Cols: 40, Rows: 10}
		s := share(t, wire.Sizing{Size: large, Owner: 1, Client: "a@x"}, small)
		s.v.began(nil)
		s.print("\x1b]0;title\x07")
		for i := range 30 {
			s.print("line %d %s\r\n", i, strings.Repeat("x", 45))
		}
		s.print("$ ")
		s.want("a larger session", true, 0, 11)
		if got := s.sees.Row(9).Text(); !strings.HasPrefix(got, "60x20 from 0,11 (~= takes it), the size") {
			t.Errorf("the hint is %q", got)
		}
		s.print("%s", strings.Repeat("typed ", 8))
		s.want("follows the cursor", true, 20, 11)

		s.print("\x1b[?1049h\x1b[2J\x1b[H\x1b[?1h\x1b[?2004h\x1b[?1002h\x1b[?1006h\x1b[?25lfull screen")
		s.want("a full-screen program", true, 0, 0)
		if !s.sees.CursorHidden() || !s.sees.ReportsMouse() || !bytes.Equal(s.sees.InputModes(), s.session.InputModes()) {
			t.Errorf("the modes are %q, want %q", s.sees.InputModes(), s.session.InputModes())
		}
		s.print("\x1b[20;60H")
		s.want("at the end", true, 20, 11)
		for in, want := range map[string]string{
			"\x1bOA\x1b[200~x\x1b[201~": "\x1bOA\x1b[200~x\x1b[201~",
			"\x1b[<0;5;3M\x1b[<0;5;3m":  "\x1b[<0;25;14M\x1b[<0;25;14m",
			"\x1b[<35;40;10M":           "\x1b[<35;60;20M",
			"\x1b[<1;x":                 "\x1b[<1;x",
		} {
			var got []byte
			for i := range in { // in pieces
				got = append(got, s.v.typed([]byte(in[i:i+1]))...)
			}
			if string(got) != want {
				t.Errorf("%q typed is %q for the session, want %q", in, got, want)
			}
		}
		s.print("\x1b[?1049l\x1b[?1l\x1b[?2004l\x1b[?1002l\x1b[?1006l\x1b[?25h")
		s.want("the shell again", true, 20, 11)
		if len(s.sees.InputModes()) > 0 {
			t.Errorf("the modes %q are left", s.sees.InputModes())
		}

		// A text of ours stays in place of the window until a key is typed.
		s.v.display.print("several\nlines")
		s.print("x")
		s.read()
		if got := screenText(s.sees); !strings.Contains(got, "[qt]\nseveral\nlines") || strings.Contains(got, "line 2") {
			t.Errorf("a text of ours is shown as %q", got)
		}
		s.v.typed([]byte("k"))
		s.want("after the text", true, 20, 11)

		// The terminal gets the session's size, and another one.
		s.resize(large)
		s.want("of the same size", false, 0, 0)
		s.print("\r\nraw\x1b[31")
		s.resize(small)
		s.want("smaller again", true, 0, 11)
		s.print("mred\r\n\x1b[m")
		s.want("the rest of a sequence", true, 0, 11)

		// The owner changes the size: to this one's, and away from it.
		s.resized(wire.Sizing{Size: small, Owner: 1, Client: "a@x"}, true)
		s.want("the session has this size", false, 0, 0)
		s.print("raw again\r\n")
		s.want("raw again", false, 0, 0)
		s.resized(wire.Sizing{Size: large, Owner: 1, Client: "a@x"}, true)
		s.want("and no more", true, 0, 11)

		// This client takes the size, resizes its terminal, and loses the size to the other one.
		size := s.v.takes()
		s.resized(wire.Sizing{Size: size, Owner: 2, Client: "b@x"}, true)
		s.want("taken", false, 0, 0)
		wide := wire.Size{Cols: 90, Rows: 12}
		s.resize(wide)
		s.read()
		if s.v.window != nil {
			t.Error("a window is drawn for the owner")
		}
		s.resized(wire.Sizing{Size: wide, Owner: 2, Client: "b@x"}, false)
		s.print("\x1b[H\x1b[2J\x1b[3Jdrawn for it")
		s.want("resized", false, 0, 0)
		s.resized(wire.Sizing{Size: small, Owner: 1, Client: "a@x"}, true)
		s.want("lost to a smaller one", true, 0, 0)
		if got := s.sees.Title(); !strings.Contains(got, "the size of a@x now, 40x10 (~= takes it)") {
			t.Errorf("it is told %q", got)
		}
		s.v.lost(client.Gap{Snapshot: []byte("after a gap")})
		s.session = screen.New(40, 10, screen.Limits{})
		s.session.Write([]byte("after a gap"))
		s.want("a gap", true, 0, 0)

		s.v.stop()
		s.v.display.restore(false)
		s.read()
		if s.sees.Alternate() || len(s.sees.InputModes()) > 0 || !strings.Contains(screenText(s.sees), "drawn for it") {
			t.Errorf("the terminal is left with %q", screenText(s.sees))
		}
	})
}

// An owner that asks for the size is told later all the same that it has got it back.
func TestOwnerAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		small := wire.Size{Cols: 40, Rows: 10}
		s := share(t, wire.Sizing{Size: small, Owner: 2}, small)
		s.v.began(nil)
		s.v.takes()
		for _, owner := range []uint64{1, 2} {
			s.resized(wire.Sizing{Size: small, Owner: owner}, false)
			s.read()
			want := map[uint64]string{1: "client now, 40x10 (~= takes it)", 2: "the size of this te"}[owner]
			if !strings.Contains(s.sees.Title(), want) {
				t.Errorf("it is not told %q: %s", want, s.sees.Title())
			}
		}
	})
}

// Another client takes the size and gives it back, and nothing is printed meanwhile: the terminal is as before, with its
// scrollback and what was in it before the session.
func TestVisitLeavesTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		size := wire.Size{Cols: 60, Rows: 10}
		own := wire.Sizing{Size: size, Owner: 2, Client: "b@x"}
		for _, count := range []int{1, 40} { // before and after the first row has scrolled off
			s := share(t, own, size)
			s.sees = screen.New(60, 10, screen.Limits{Lines: 1000})
			s.sees.Write([]byte("of the user's own shell\r\n"))
			for i := range count {
				s.print("line %d of the session, which is longer than a small screen is wide\r\n", i)
			}
			s.print("\x1b[?2004h\x1b[31mprompt\x1b[m $ ")
			s.read()
			contents := func() string {
				s.sees.Write([]byte("\x1b]2;\x07")) // which says for a while whose the size is
				return fmt.Sprint(s.sees.Lines(), s.sees.Dump())
			}
			before := contents()
			for range 3 {
				s.resized(wire.Sizing{Size: wire.Size{Cols: 45, Rows: 30}, Owner: 1, Client: "a@phone"}, true)
				s.read()
				if !s.sees.Alternate() {
					t.Fatal("no window is drawn")
				}
				s.resized(own, true)
				s.read()
				if got := contents(); got != before {
					t.Fatalf("the terminal was\n%s\nand is\n%s", before, got)
				}
			}
			s.print("ls\r\nnext")
			s.read()
			if got := screenText(s.sees); !strings.Contains(got, "prompt $ ls\nnext") {
				t.Errorf("what is printed then: %s", got)
			}
		}
	})
}

func screenText(s *screen.Screen) string {
	var rows []string
	_, height := s.Size()
	for y := range height {
		rows = append(rows, strings.TrimRight(s.Row(y).Text(), " "))
	}
	return strings.TrimRight(strings.Join(rows, "\n"), "\n")
}
