package asciicast

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files")

var start = time.Unix(1_700_000_000, 0)

func at(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }

// story writes a recording with everything that a Writer can record.
func story(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, Header{
		Cols: 80, Rows: 24, Start: start, Term: "xterm-256color", Title: `a "title" <&>`,
	})
	for _, step := range []func() error{
		func() error { return err },
		func() error { return w.Output(at(100), []byte("$ \x1b[1mcaf\xc3")) },
		func() error { return w.event(at(150), Input, "l") },
		func() error { return w.Resize(at(200), 120, 40) },
		func() error { return w.Output(at(250), []byte("\xa9\r\n")) },
		func() error { return w.event(at(250), Input, "漢") },
		func() error { return w.Marker(at(1000), "built <&> \u2028") },
		func() error { return w.Output(at(900), []byte("before its time \x00\x7f\xff\xf0\x9f\x98")) },
		func() error { return w.Resize(at(950), 0, 40) }, // no size of a terminal
		func() error { return w.Exit(at(3000).Add(1234567*time.Nanosecond), 130) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// storyEvents are the events of the story.
var storyEvents = []Event{
	{100 * time.Millisecond, Output, "$ \x1b[1mcaf"},
	{150 * time.Millisecond, Input, "l"},
	{200 * time.Millisecond, Resize, "120x40"},
	{250 * time.Millisecond, Output, "é\r\n"},
	{250 * time.Millisecond, Input, "漢"},
	{time.Second, Marker, "built <&> \u2028"},
	{time.Second, Output, "before its time \x00\x7f\ufffd"},
	{3001234 * time.Microsecond, Output, "\ufffd\ufffd\ufffd"},
	{3001234 * time.Microsecond, Exit, "130"},
}

const goldenFile = "testdata/story-v3.cast"

func TestGolden(t *testing.T) {
	got := story(t)
	if *update {
		if err := os.WriteFile(goldenFile, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("written:\n%s\nwant\n%s", got, want)
	}
	header, events, err := ReadAll(bytes.NewReader(want))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(events, storyEvents) {
		t.Errorf("read as\n%q, want\n%q", events, storyEvents)
	}
	if want := (Header{80, 24, start, "xterm-256color", `a "title" <&>`}); header != want {
		t.Errorf("header %+v, want %+v", header, want)
	}
}

// A recording that is cut off at any byte has its events up to there, and says that it is cut off.
func TestTruncated(t *testing.T) {
	file := story(t)
	for n := range file {
		_, events, err := ReadAll(bytes.NewReader(file[:n]))
		lines := bytes.Count(file[:n], []byte("\n"))
		if atEnd := n > 0 && (file[n-1] == '\n' || file[n] == '\n'); atEnd != (err == nil) {
			t.Errorf("%d bytes, at the end of a line %v: %v", n, atEnd, err)
		}
		if len(events) < lines-1 || len(events) > 0 && !reflect.DeepEqual(events, storyEvents[:len(events)]) {
			t.Errorf("%d bytes, %d lines: events %q", n, lines, events)
		}
	}
}

func TestSyntax(t *testing.T) {
	const header = `{"version":3,"term":{"cols":80,"rows":24}}` + "\n"
	for content, want := range map[string]string{
		"#!/bin/sh\n":             "not an asciicast file of version 3\ninvalid",
		`{"version":2,"width":1}`: "not an asciicast file of version 3",
		header + `[1,"o"]`:        "event 1: it must be [time, code, text]",
		header + `["1","o",""]`:   "event 1: it must be [time, code, text]",
		header + `[1,"o",""] "`:   "event 2: unexpected EOF",
	} {
		if _, _, err := ReadAll(strings.NewReader(content)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", content, err, want)
		}
	}
}

// Long output is several events, none of which cuts a character.
func TestLongOutput(t *testing.T) {
	var b bytes.Buffer
	w, err := NewWriter(&b, Header{Cols: 80, Rows: 24, Start: start})
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Repeat("€", maxText)
	if err := w.Output(at(0), []byte(want)); err != nil {
		t.Fatal(err)
	}
	_, events, err := ReadAll(&b)
	var got strings.Builder
	for _, e := range events {
		got.WriteString(e.Data)
	}
	if err != nil || got.String() != want || len(events) != 3 {
		t.Errorf("%d events with %d bytes, %v; want 3 with %d", len(events), got.Len(), err, len(want))
	}
}

func TestWriterErrors(t *testing.T) {
	for _, h := range []Header{{}, {Cols: 80}, {Cols: 1 << 16, Rows: 1}} {
		if _, err := NewWriter(io.Discard, h); err == nil {
			t.Errorf("header %+v: no error", h)
		}
	}
	full := errors.New("no space left")
	w, err := NewWriter(&limited{n: 1, err: full}, Header{Cols: 80, Rows: 24})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.Output(start, []byte("x")); !errors.Is(err, full) {
			t.Errorf("error %v, want %v", err, full)
		}
	}
}

// limited fails after n calls of Write.
type limited struct {
	n   int
	err error
}

func (l *limited) Write(b []byte) (int, error) {
	if l.n--; l.n < 0 {
		return 0, l.err
	}
	return len(b), nil
}

func TestParseSize(t *testing.T) {
	if cols, rows, ok := ParseSize("120x40"); !ok || cols != 120 || rows != 40 {
		t.Errorf("120x40 is %d, %d, %v", cols, rows, ok)
	}
	for _, data := range []string{"", "x", "80", "80x", "0x1", "-1x1", "80x24x1", "65536x1", "9999999999999999999x1"} {
		if _, _, ok := ParseSize(data); ok {
			t.Errorf("%q is a size", data)
		}
	}
}

// Output in any pieces gives the same text: what is not UTF-8 is replaced as if it came at once.
func FuzzPieces(f *testing.F) {
	f.Add([]byte("caf\xc3\xa9 \xe6\xbc\xa2 \xf0\x9f\x98\x80 \xff\xf0\x9f\xc3("), []byte{1, 2, 0, 3})
	f.Fuzz(func(t *testing.T, text, pieces []byte) {
		var b bytes.Buffer
		w, err := NewWriter(&b, Header{Cols: 80, Rows: 24, Start: start})
		if err != nil {
			t.Fatal(err)
		}
		rest := text
		for _, n := range pieces {
			piece := rest[:min(int(n), len(rest))]
			rest = rest[len(piece):]
			if err := w.Output(start, piece); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Output(start, rest); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(start); err != nil {
			t.Fatal(err)
		}
		_, events, err := ReadAll(&b)
		got := ""
		for _, e := range events {
			got += e.Data
		}
		if want := string([]rune(string(text))); err != nil || got != want {
			t.Fatalf("%q is recorded as %q, %v; want %q", text, got, err, want)
		}
	})
}
