//go:build linux

package screen

import (
	"bytes"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is how long anything may take on a busy machine.
const patience = 30 * time.Second

// wantSeen fails unless something comes to be seen.
func wantSeen(t *testing.T, what string, seen <-chan time.Time) time.Time {
	t.Helper()
	at := Await(seen, time.Now().Add(patience))
	if at.IsZero() {
		t.Fatalf("%s: never seen", what)
	}
	return at
}

func wantNotSeen(t *testing.T, what string, seen <-chan time.Time) {
	t.Helper()
	select {
	case <-seen:
		t.Errorf("%s: seen", what)
	default:
	}
}

func TestScreenTellsWhatIsSeen(t *testing.T) {
	s := New(t)
	glyph := s.Watch(func(v View) bool { return v.At(4, 2) == 'x' })
	text := s.WatchText("<2>")
	before := time.Now()
	s.Write([]byte("\x1b[5;3Hy\x1b[1;1H<1>"))
	wantSeen(t, "what was written", s.WatchText("<1>"))
	wantNotSeen(t, "another glyph", glyph)
	wantNotSeen(t, "another mark", text)
	s.Write([]byte("\x1b[5;3"))
	s.Write([]byte("Hx"))
	if at := wantSeen(t, "the glyph", glyph); at.Before(before) || at.After(time.Now()) {
		t.Errorf("seen at %v", at)
	}
	// As mosh does: only what differs is painted.
	s.Write([]byte("\x1b[1;2H2"))
	wantSeen(t, "a mark that is painted over another", text)
	wantSeen(t, "what is there already", s.WatchText("<2>"))
}

// What a client that paints the screen writes: it moves, erases, inserts, deletes and
// scrolls.
func TestScreenIsATerminal(t *testing.T) {
	for _, c := range []struct{ name, written, want string }{
		{"plain lines", "one\r\ntwo\r\n", "one|two"},
		{"back over a letter", "onf\be", "one"},
		{"tab", "a\tb", "a       b"},
		{"colours", "\x1b[1;31mred\x1b[0m \x1b[4mline\x1b[m", "red line"},
		{"title", "\x1b]0;a title\a$ \x1b]2;another\x1b\\x", "$ x"},
		{"erase the rest of the line", "one two\r\x1b[3C\x1b[K", "one"},
		{"erase letters", "one two\r\x1b[4X", "    two"},
		{"insert", "one three\x1b[1;5H\x1b[4@two", "one two three"},
		{"delete", "one xxxtwo\x1b[1;5H\x1b[3P", "one two"},
		{"insert a line", "one\r\nthree\x1b[2;1H\x1b[Ltwo", "one|two|three"},
		{"delete a line", "one\r\nx\r\ntwo\x1b[2;1H\x1b[M", "one|two"},
		{"scroll a region", "\x1b[2;3r\x1b[1;1Htop\r\none\r\ntwo\nthree\x1b[r", "top|two|   three"},
		{"another screen and back", "one\x1b[?1049h\x1b[2J\x1b[Hhello\x1b[?1049l", "one"},
		{"wrap", strings.Repeat("x", Columns) + "y", strings.Repeat("x", Columns) + "|y"},
		{"more than fit", strings.Repeat("x\r\n", Rows+5) + "last", strings.Repeat("x|", Rows-1) + "last"},
		{"letters of several bytes", "\xc3\xa9t\xc3\xa9", "été"},
	} {
		s := New(t)
		for _, b := range []byte(c.written) {
			s.Write([]byte{b})
		}
		want := strings.Split(c.want, "|")
		seen := s.Watch(func(v View) bool {
			for n := range Rows {
				row := ""
				if n < len(want) {
					row = want[n]
				}
				if v.Row(n) != row {
					return false
				}
			}
			return true
		})
		if Await(seen, time.Now().Add(patience)).IsZero() {
			t.Errorf("%s: not shown as %q", c.name, c.want)
		}
	}
}

// A flood that is not drawn line by line leaves the same screen.
func TestFloodLeavesTheSameScreen(t *testing.T) {
	var flood bytes.Buffer
	flood.WriteString("half\x1b[31") // of a sequence that goes on in the next
	for n := range 5000 {
		fmt.Fprintf(&flood, "mline %d %s\r\n", n, strings.Repeat("x", n%200))
	}
	for _, cut := range []int{8, 30, 1000, 100_000} {
		all := flood.Bytes()
		first, rest := all[:cut], all[cut:]
		if short := lastScreens(bytes.Clone(rest)); len(short) > floodBytes {
			t.Errorf("%d bytes of %d are drawn", len(short), len(rest))
		}
		whole, short := drawn(first, rest), drawn(first, lastScreens(bytes.Clone(rest)))
		for n := range Rows {
			if whole.Row(n) != short.Row(n) {
				t.Errorf("cut at %d, row %d: %q, want %q", cut, n, short.Row(n), whole.Row(n))
			}
		}
	}
	escaped := append(bytes.Repeat([]byte("x\r\n"), 5000), "\x1b[5;5Hx"...)
	if !bytes.Equal(lastScreens(escaped), escaped) {
		t.Error("what moves the cursor is left out")
	}
}

// drawn returns what a screen shows.
func drawn(parts ...[]byte) View {
	v := View{NewTerminal()}
	for _, p := range parts {
		v.Terminal.Write(p)
	}
	return v
}

// It takes a flood for little processor time, as other processes need it too.
func TestScreenKeepsUp(t *testing.T) {
	s := New(t)
	line := []byte(strings.Repeat("a line of a file ", 4) + "\r\n")
	block := bytes.Repeat(line, 100)
	before := processorTime(t)
	size := 0
	for size < 50<<20 {
		s.Write(block)
		size += len(block)
	}
	s.Write([]byte("<2>"))
	wantSeen(t, "the end", s.WatchText("<2>"))
	if took := processorTime(t) - before; took > 10*time.Second {
		t.Errorf("%d bytes took %v", size, took)
	}
}

// processorTime returns what this process has used.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
