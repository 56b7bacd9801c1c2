//go:build linux

package work

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/bench/screen"
)

// The program that answers keys shows each at its place, and then the count.
func TestEcho(t *testing.T) {
	person, program, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer person.Close()
	defer program.Close()
	s := screen.New(t)
	go echo(program, program)
	go func() {
		buf := make([]byte, 1024)
		for {
			n, err := person.Read(buf)
			if err != nil {
				return
			}
			s.Write(buf[:n])
		}
	}()
	wantSeen(t, "that it is ready", s.WatchText(readyMark))
	var typed []byte
	for n := range textKeys {
		typed = append(typed, key(n))
	}
	last := func(n int) <-chan time.Time {
		return s.Watch(func(v screen.View) bool { return counted(v) == n+1 })
	}
	for n, cut := range []int{1, textWidth, textWidth + 1, 500, textKeys} {
		shown := 0
		if n > 0 {
			shown = []int{1, textWidth, textWidth + 1, 500}[n-1]
		}
		person.Write(typed[shown:cut])
		wantSeen(t, fmt.Sprintf("the count of %d keys", cut), last(cut))
	}
	wantSeen(t, "every key at its place", s.Watch(func(v screen.View) bool {
		for n, key := range typed {
			row, column := place(n)
			if v.At(row, column) != rune(key) {
				return false
			}
		}
		return true
	}))
}

func wantSeen(t *testing.T, what string, seen <-chan time.Time) {
	t.Helper()
	if screen.Await(seen, time.Now().Add(rig.Patience)).IsZero() {
		t.Fatalf("%s: never seen", what)
	}
}

// shownOutput returns a record of what a program of output printed, with changes, and
// how many lines there were and their hash.
func shownOutput(t *testing.T, change func(lines []string) []string) (*lineRecord, int, string) {
	t.Helper()
	var out bytes.Buffer
	n, sum, err := Output{Lasts: 50 * time.Millisecond, Rate: 200_000}.print(&out)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.ReplaceAll(out.String(), "\n", "\r\n"), "\r\n")
	lines = lines[:len(lines)-1]
	if len(lines) != n || n < 100 {
		t.Fatalf("%d lines, %d printed", len(lines), n)
	}
	s := newLineRecord()
	s.Write([]byte("\x1b]0;a title\a"))
	for _, l := range change(lines) {
		s.Write([]byte(l[:len(l)/2]))
		s.Write([]byte(l[len(l)/2:]))
	}
	return s, n, fmt.Sprintf("%x", sum)
}

func TestLineRecord(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(lines []string) []string
		whole  bool
		same   bool
	}{
		{"all", func(lines []string) []string { return lines }, true, true},
		{"a line twice", func(lines []string) []string { return append(lines, lines[3]) }, true, true},
		{"a line missing", func(lines []string) []string { return append(lines[:3:3], lines[4:]...) }, false, false},
		{"the last missing", func(lines []string) []string { return lines[:len(lines)-1] }, false, false},
		{"a letter changed", func(lines []string) []string {
			lines[3] = lines[3][:20] + "?" + lines[3][21:]
			return lines
		}, false, false},
		{"another letter", func(lines []string) []string {
			letter := "A"
			if lines[3][20] == 'A' {
				letter = "B"
			}
			lines[3] = lines[3][:20] + letter + lines[3][21:]
			return lines
		}, true, false},
		{"nothing", func([]string) []string { return nil }, false, false},
	} {
		s, n, sum := shownOutput(t, c.change)
		share, same := s.complete(n, sum)
		if (share == 1) != c.whole || same != c.same {
			t.Errorf("%s: share %v, same %v", c.name, share, same)
		}
	}
}

// A client that paints the screen shows lines that it never writes as such.
func TestLineRecordOfAScreen(t *testing.T) {
	_, n, sum := shownOutput(t, func([]string) []string { return nil })
	s := newLineRecord()
	var out bytes.Buffer
	Output{Lasts: 50 * time.Millisecond, Rate: 200_000}.print(&out)
	before := time.Now()
	s.after = before
	v := screen.View{Terminal: screen.NewTerminal()}
	for number, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		fmt.Fprintf(v.Terminal, "\x1b[%d;1H%s", number%screen.Rows+1, line)
		s.look(v)
	}
	if share, same := s.complete(n, sum); share != 1 || !same {
		t.Errorf("share %v, same %v", share, same)
	}
	if s.back.Before(before) || s.back.After(time.Now()) {
		t.Errorf("the first new line at %v", s.back)
	}
}

// The answers to keys are compared with what was typed, byte by byte.
func TestCheckEchoes(t *testing.T) {
	const keys = 2 * textKeys // the second half is at the same places as the first
	var all strings.Builder
	for n := range keys {
		fmt.Fprintf(&all, "%c%s", key(n), echoed(n+1))
	}
	whole := all.String()
	for what, written := range map[string]string{
		"all":                  whole,
		"all, after the start": "\x1b[H\x1b[2J" + echoed(0) + "\x1b]0;a title\a" + whole,
		"an answer missing":    strings.Replace(whole, mark(9), "", 1),
		"an answer twice":      whole + whole[len(whole)-len(echoed(keys)):],
		"the last missing":     whole[:len(whole)-len(echoed(keys))],
	} {
		s := new(transcript)
		s.Write([]byte(written))
		if err := checkEchoes(s.String(), keys); (err == nil) != strings.HasPrefix(what, "all") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
