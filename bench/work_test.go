//go:build linux

package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/quicterm/quicterm/bench/result"
)

// The program that answers keys shows each at its place, and then the count.
func TestEcho(t *testing.T) {
	person, program, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer person.Close()
	defer program.Close()
	s := newScreen(t)
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
	wantSeen(t, "that it is ready", s.mark(readyMark))
	var typed []byte
	for n := range textKeys {
		typed = append(typed, keyNumber(n))
	}
	last := func(n int) <-chan time.Time {
		return s.watch(func(v view) bool { return counted(v) == n+1 })
	}
	for n, cut := range []int{1, textWidth, textWidth + 1, 500, textKeys} {
		shown := 0
		if n > 0 {
			shown = []int{1, textWidth, textWidth + 1, 500}[n-1]
		}
		person.Write(typed[shown:cut])
		wantSeen(t, fmt.Sprintf("the count of %d keys", cut), last(cut))
	}
	wantSeen(t, "every key at its place", s.watch(func(v view) bool {
		for n, key := range typed {
			row, column := place(n)
			if v.at(row, column) != rune(key) {
				return false
			}
		}
		return true
	}))
}

// shownOutput returns a transcript of what a program of output printed, with changes, and
// how many lines there were and their hash.
func shownOutput(t *testing.T, change func(lines []string) []string) (*transcript, int, string) {
	t.Helper()
	var out bytes.Buffer
	n, sum, err := output{lasts: 50 * time.Millisecond, rate: 200_000}.print(&out)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.ReplaceAll(out.String(), "\n", "\r\n"), "\r\n")
	lines = lines[:len(lines)-1]
	if len(lines) != n || n < 100 {
		t.Fatalf("%d lines, %d printed", len(lines), n)
	}
	s := newTranscript()
	s.Write([]byte("\x1b]0;a title\a"))
	for _, l := range change(lines) {
		s.Write([]byte(l[:len(l)/2]))
		s.Write([]byte(l[len(l)/2:]))
	}
	return s, n, fmt.Sprintf("%x", sum)
}

func TestTranscript(t *testing.T) {
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
func TestTranscriptOfAScreen(t *testing.T) {
	_, n, sum := shownOutput(t, func([]string) []string { return nil })
	s := newTranscript()
	var out bytes.Buffer
	output{lasts: 50 * time.Millisecond, rate: 200_000}.print(&out)
	before := time.Now()
	s.after = before
	v := view{newTerminal()}
	for number, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		fmt.Fprintf(v.vt, "\x1b[%d;1H%s", number%screenRows+1, line)
		s.look(v)
	}
	if share, same := s.complete(n, sum); share != 1 || !same {
		t.Errorf("share %v, same %v", share, same)
	}
	if s.back.Before(before) || s.back.After(time.Now()) {
		t.Errorf("the first new line at %v", s.back)
	}
}

func TestVerdict(t *testing.T) {
	const rtt = 100 * time.Millisecond
	r := result.Record{Metric: "truth", Values: hundred(101)} // up to 200
	rate := result.Record{Metric: "rate", Values: []float64{0.8, 0.95}}
	complete := result.Record{Metric: "complete", Values: []float64{1, 0.99}}
	for _, c := range []struct {
		record result.Record
		slack  float64
		bounds []bound
		text   string
		want   string
	}{
		{r, 1, nil, "", result.Free},
		{r, 1, []bound{{metric: "feel", quantile: 0.5, plus: 1}}, "", result.Free},
		{r, 1, []bound{{metric: "truth", quantile: 0.5, rtts: 1, plus: 50}}, "p50 150", result.OK},
		{r, 1, []bound{{metric: "truth", quantile: 0.5, rtts: 1, plus: 49}}, "p50 149", result.Missed},
		{r, 1, []bound{{metric: "truth", quantile: 0.99, rtts: 1.99}, {metric: "truth", quantile: 1, rtts: 1.99}}, "p99 199, max 199", result.Missed},
		{r, 2, []bound{{metric: "truth", quantile: 1, rtts: 1}}, "max 200", result.OK},
		{rate, 1, []bound{{metric: "rate", quantile: 0.5, plus: 0.8, atLeast: true}}, "p50 >= 0.8", result.OK},
		{rate, 1, []bound{{metric: "rate", quantile: 0, plus: 0.9, atLeast: true}}, "min >= 0.9", result.Missed},
		{rate, 2, []bound{{metric: "rate", quantile: 0, plus: 0.9, atLeast: true}}, "min >= 0.45", result.OK},
		{complete, 2, []bound{{metric: "complete", quantile: 0, plus: 1, atLeast: true}}, "min >= 1", result.Missed},
		{result.Record{Metric: "truth"}, 1, []bound{{metric: "truth", quantile: 0.5, rtts: 1}}, "p50 100", result.Missed},
	} {
		text, got := verdict(c.record, c.bounds, rtt, c.slack)
		if text != c.text || got != c.want {
			t.Errorf("%v, slack %v: %q %q, want %q %q", c.bounds, c.slack, text, got, c.text, c.want)
		}
	}
}

// Every scenario can be played: names are unique, and bounds are of what is measured.
func TestScenarios(t *testing.T) {
	metrics := map[string][]string{}
	names := map[string]bool{}
	for _, s := range scenarios {
		if names[s.name] {
			t.Errorf("two scenarios are called %q", s.name)
		}
		names[s.name] = true
		if k, ok := s.work.(keystrokes); ok && typedBefore+k.keys > textKeys {
			t.Errorf("%s: the keys do not fit the screen", s.name)
		}
		for _, b := range s.bounds {
			metrics[b.metric] = append(metrics[b.metric], s.name)
		}
		for i := 1; i < len(s.events); i++ {
			if s.events[i].at < s.events[i-1].at {
				t.Errorf("%s: events are not in order", s.name)
			}
		}
	}
	for metric, in := range metrics {
		if result.About(metric).Meaning == "" {
			t.Errorf("bounds of %s are of %q, which is no metric", strings.Join(in, ", "), metric)
		}
	}
}
