package screen

import (
	"fmt"
	"strings"
	"testing"
)

// Rows that have scrolled off are counted, whether they are kept or not, and the memory of the
// scrollback is bounded.
func TestScrolledAndMemory(t *testing.T) {
	s := New(80, 24, Limits{Lines: 100})
	empty := s.Memory()
	s.Write([]byte(strings.Repeat("line\r\n", 23)))
	if n := s.Scrolled(); n != 0 {
		t.Errorf("%d rows scrolled off before the screen is full", n)
	}
	s.Write([]byte(strings.Repeat("line\r\n", 1000)))
	if n := s.Scrolled(); n != 1000 || s.Lines() != 100 {
		t.Errorf("%d rows scrolled off, want 1000; %d are kept", n, s.Lines())
	}
	s.ClearHistory()
	if n := s.Scrolled(); n != 1000 || s.Lines() != 0 {
		t.Errorf("%d rows scrolled off then, want 1000; %d are kept", n, s.Lines())
	}
	if n := s.Memory(); n != empty || empty < 80*24*8 {
		t.Errorf("%d bytes with a scrollback that is cleared, %d at first", n, empty)
	}
}

// Empty rows that have scrolled off are forgotten as others are.
func TestEmptyRowsAreForgotten(t *testing.T) {
	s := New(80, 24, Limits{Lines: 100})
	s.Write([]byte(strings.Repeat("\r\n", 20*blockRows)))
	rows := 0
	for _, b := range s.history.blocks {
		rows += cap(b.rows)
	}
	if most := 4 * blockRows; rows > most || s.Lines() != 100 {
		t.Errorf("memory for %d rows with %d lines of scrollback, want at most %d rows", rows, s.Lines(), most)
	}
}

// The limit of the scrollback holds for the styles and links of its rows, too.
func TestMemoryOfColors(t *testing.T) {
	for name, output := range map[string]string{
		"colours": "\x1b[38;2;%d;%d;%dmx",
		"links":   "\x1b[38;2;%d;%d;%[3]dm\x1b]8;;http://%[3]d." + strings.Repeat("a", 1000) + "\ax",
	} {
		s := New(80, 24, Limits{Bytes: 256 << 10})
		most, kept := 0, 0
		for i := range 80_000 {
			fmt.Fprintf(s, output, i>>16, i>>8&255, i&255)
			if i%100 == 0 {
				most, kept = max(most, s.Memory()), max(kept, s.Lines())
			}
		}
		screen := 80 * 24 * (8 + 2*styleBytes)
		if most > screen+2*(256<<10) {
			t.Errorf("%s: %d bytes, of which a screen takes %d", name, most, screen)
		}
		if kept < 10 {
			t.Errorf("%s: %d lines of scrollback are kept", name, kept)
		}
		checkInvariants(t, s)
	}
}

// What the cells refer to counts as well.
func TestMemoryOfLinksAndMarks(t *testing.T) {
	for name, output := range map[string]string{
		"links": "\x1b]8;;http://%d." + strings.Repeat("a", 1000) + "\aX",
		"marks": "%d\u0301\u0302\u0303",
	} {
		s := New(80, 24, Limits{})
		before := s.Memory()
		fmt.Fprintf(s, output, 1)
		fmt.Fprintf(s, output, 2)
		if n := s.Memory(); n <= before+len(output) {
			t.Errorf("%s: %d bytes with %d of output, %d before", name, n, 2*len(output), before)
		}
	}
}

// A repeat count costs no more than the cells that it fills, also of a character with many marks.
func TestRepeatOfMarks(t *testing.T) {
	s := New(80, 24, Limits{})
	s.Write([]byte("e" + strings.Repeat("\u0301", 30) + "\x1b[9999b"))
	if a, b := s.Row(0).Cell(0), s.Row(22).Cell(78); a.Text != b.Text || len(a.Text) != 61 {
		t.Errorf("%q is repeated as %q", a.Text, b.Text)
	}
}
