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

// A watcher is a Watch, and the terminal that it draws on.
type watcher struct {
	t *testing.T
	Watch
	out  *bytes.Buffer
	sees *screen.Screen
}

func newWatcher(t *testing.T, window wire.Size) *watcher {
	d, out := live()
	w := (&Terminal{display: d}).Watch()
	w.setSize(window)
	return &watcher{t, w, out, screen.New(int(window.Cols), int(window.Rows), screen.Limits{})}
}

// want compares the first rows of the terminal, and the beginning of the last one.
func (w *watcher) want(why, last string, rows ...string) {
	w.t.Helper()
	time.Sleep(drawAfter)
	synctest.Wait()
	w.sees.Write(w.out.Bytes())
	w.out.Reset()
	_, height := w.sees.Size()
	text := func(y int) string { return strings.TrimRight(w.sees.Row(y).Text(), " ") }
	for y, want := range rows {
		if got := text(y); got != want {
			w.t.Errorf("%s: row %d is %q, want %q", why, y, got, want)
		}
	}
	if got := text(height - 1); last != "" && !strings.HasPrefix(got, last+": arrows") {
		w.t.Errorf("%s: the last row is %q, want %q", why, got, last)
	}
}

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatcher(t, wire.Size{Cols: 40, Rows: 10})
		s := w.Streams()
		s.Resized(wire.Sizing{Size: wire.Size{Cols: 40, Rows: 10}})
		s.Began([]byte("\x1b[31mscreen\r\n"))
		w.want("the beginning", "", "screen", "")
		s.Stdout.Write([]byte("\x1b[c\x1b]52;c;AAAA\a\x1b[?1000h\x1b]2;title\x1b\\more"))
		time.Sleep(drawAfter)
		synctest.Wait()
		if strings.Contains(w.out.String(), "52;c") || strings.Contains(w.out.String(), "1000h") ||
			!strings.Contains(w.out.String(), "\x1b]2;title\x1b\\") {
			t.Errorf("the terminal gets %q", w.out)
		}
		w.want("output", "", "screen", "more")
		if x, y := w.sees.Cursor(); x != 4 || y != 1 {
			t.Errorf("the cursor is at %d, %d", x, y)
		}

		s.Resized(wire.Sizing{Size: wire.Size{Cols: 60, Rows: 20}})
		w.want("a larger session", "60x20 from 0,0", "screen", "more")
		s.Stdout.Write([]byte("\x1b[2J"))
		for y := range 20 {
			s.Stdout.Write(fmt.Appendf(nil, "\x1b[%dHrow %d", y+1, y))
		}
		w.want("follows the cursor down", "60x20 from 0,11", "row 11", "row 12")
		s.Stdout.Write([]byte("\x1b[1;51Hright"))
		w.want("to the right", "60x20 from 20,0", strings.Repeat(" ", 30)+"right")
		w.typed([]byte("\x1b[B\x1bOB\x1b[D"))
		w.want("arrows", "60x20 from 16,2", "", "")
		s.Stdout.Write([]byte("\x1b[H"))
		w.want("stays there", "60x20 from 16,2", "")
		w.typed([]byte(" "))
		w.want("follows again", "60x20 from 0,0", "row 0", "row 1")

		s.Stdout.Write([]byte("\x1b[20H\r\nnew 1\r\nnew 2"))
		w.typed([]byte("\x1b[5~\x1b[5~\x1b[5~\x1b[5~\x1b[5~"))
		w.want("the scrollback", "60x20 from 0,-2", "row 0", "row 1")
		s.Stdout.Write([]byte("\r\nnew 3"))
		w.want("stays with what is read", "60x20 from 0,-3", "row 0", "row 1")

		s.Lost(client.Gap{From: 1, To: 2, Bytes: 3, Snapshot: []byte("fresh")})
		w.typed([]byte(" "))
		w.want("a gap", "60x20 from 0,0", "fresh", "")
		w.setSize(wire.Size{Cols: 80, Rows: 30})
		w.sees = screen.New(80, 30, screen.Limits{})
		w.want("a larger window", "", "fresh", "")
		if w.typed([]byte("q")) || !w.typed([]byte("\x1b[A\x03")) {
			t.Error("Ctrl-C does not leave")
		}
		w.display.restore(false)
		w.sees.Write(w.out.Bytes())
		if w.sees.Alternate() {
			t.Error("the alternate screen is left on")
		}
	})
}
