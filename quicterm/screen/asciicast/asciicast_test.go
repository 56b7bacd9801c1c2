package asciicast

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

var update = flag.Bool("update", false, "write the golden files")

var start = time.Unix(1_700_000_000, 0)

func at(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }

// story writes a recording with everything that a Writer can record. That of version 2 is in a file.
func story(t testing.TB, version int) []byte {
	t.Helper()
	if version == 2 {
		content, err := os.ReadFile(goldenFile(version))
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	var b bytes.Buffer
	w, err := NewWriter(&b, Header{
		Cols: 80, Rows: 24, Start: start, IdleLimit: 2500 * time.Millisecond,
		Term: "xterm-256color", Title: `a "title" <&>`, Command: "bash -l",
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

// storyEvents are the events of the story in version 3.
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

func wantEvents(version int) []Event {
	if version == 2 {
		return storyEvents[:len(storyEvents)-1]
	}
	return storyEvents
}

func goldenFile(version int) string {
	return filepath.Join("testdata", fmt.Sprintf("story-v%d.cast", version))
}

func TestGolden(t *testing.T) {
	for version := 2; version <= 3; version++ {
		got := story(t, version)
		if *update {
			if err := os.WriteFile(goldenFile(version), got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(goldenFile(version))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("version %d:\n%s\nwant\n%s", version, got, want)
		}
		header, events, err := ReadAll(bytes.NewReader(want))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(events, wantEvents(version)) {
			t.Errorf("version %d is read as\n%q, want\n%q", version, events, wantEvents(version))
		}
		if want := (Header{version, 80, 24, start, 2500 * time.Millisecond, "xterm-256color", `a "title" <&>`, "bash -l"}); header != want {
			t.Errorf("header %+v, want %+v", header, want)
		}
	}
}

// A recording that is cut off at any byte has its events up to there, and says that it is cut off.
func TestTruncated(t *testing.T) {
	for version := 2; version <= 3; version++ {
		file := story(t, version)
		for n := range file {
			_, events, err := ReadAll(bytes.NewReader(file[:n]))
			var cut *CutError
			var syntax *SyntaxError
			lines := bytes.Count(file[:n], []byte("\n"))
			switch atEnd := n > 0 && (file[n-1] == '\n' || file[n] == '\n'); {
			case n == 0:
				if !errors.As(err, &syntax) || err.Error() != "line 1 is missing: the file is empty" {
					t.Errorf("empty file: %v", err)
				}
			case atEnd && err != nil:
				t.Errorf("%d bytes, the end of a line: %v", n, err)
			case !atEnd && (!errors.As(err, &cut) || cut.Line != lines+1):
				t.Errorf("%d bytes: %v, want that it is cut off in line %d", n, err, lines+1)
			}
			if want := wantEvents(version)[:len(events)]; len(events) > 0 && !reflect.DeepEqual(events, want) {
				t.Errorf("%d bytes: events %q, want %q", n, events, want)
			}
			if len(events) < lines-1 {
				t.Errorf("%d bytes: %d events of %d lines", n, len(events), lines)
			}
		}
	}
}

func TestSyntax(t *testing.T) {
	const header = `{"version":3,"term":{"cols":80,"rows":24}}` + "\n"
	for content, want := range map[string]string{
		"\n":                                            "line 1 is not the header of an asciicast file",
		"#!/bin/sh\n":                                   "line 1 is not the header of an asciicast file",
		"\x7fELF":                                       "line 1 is not the header of an asciicast file",
		`{"version":1,"stdout":[]}`:                     "line 1 has version 1 of asciicast: versions 2 and 3 are known",
		`{"version":"3"}`:                               "line 1 is not the header of an asciicast file",
		`{"version":3,"width":80}`:                      "line 1 has no terminal (term)",
		`{"version":2,"width":-1,"height":1}`:           "line 1 has a size that no terminal has",
		`{"version":2,"width":1,"height":65536}`:        "line 1 has a size that no terminal has",
		header + "[]\n":                                 "line 2 is not an event: [time, code, data]",
		header + `[1,"o"]` + "\n":                       "line 2 is not an event: [time, code, data]",
		header + `[1,"o",null]` + "\n":                  "line 2 is not an event: [time, code, data]",
		header + `["1","o",""]` + "\n":                  "line 2 is not an event: [time, code, data]",
		header + "# comment\n\n" + `{"a":1}` + "\n":     "line 4 is not an event: [time, code, data]",
		header + `[-1,"o",""]` + "\n":                   "line 2 has a time that is out of range",
		header + `[1e300,"o",""]` + "\n":                "line 2 has a time that is out of range",
		header + strings.Repeat(`[2e8,"o",""]`+"\n", 2): "line 3 has a time that is out of range",
		header + `[0,"o","` + strings.Repeat("x", maxLine) + `"]`:   "line 2 is longer than 4194304 bytes",
		strings.Repeat(" ", maxLine+1):                              "line 1 is longer than 4194304 bytes",
		header + strings.Repeat("[", 100_000) + "\n":                "line 2 is not an event: [time, code, data]",
		header + "\n \r\n#\n" + `[0,"o","",{},[]]` + "\r\n" + "x\n": "line 6 is not an event: [time, code, data]",
	} {
		_, _, err := ReadAll(strings.NewReader(content))
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || err.Error() != want {
			t.Errorf("%.80q: %v, want %s", content, err, want)
		}
	}
}

// What files of other programs have, or may have.
func TestOtherFiles(t *testing.T) {
	for content, want := range map[string][]Event{
		`{"version":2,"width":0,"height":0,"theme":{"fg":"#fff"},"duration":1.5}
[0.5, "o", "a"]
[0.25,"z","unknown",1]
[1,"o","\ud83d\ude00\ud83d"]`: {
			{500 * time.Millisecond, Output, "a"}, {500 * time.Millisecond, "z", "unknown"}, {time.Second, Output, "😀\ufffd"},
		},
		"{\"version\":3,\"term\":{\"cols\":80,\"rows\":24,\"theme\":{}},\"tags\":[\"x\"]}\r\n# a comment\r\n\r\n [1e-1, \"o\", \"a\"] \r\n[0.0000014,\"o\",\"\"]": {
			{100 * time.Millisecond, Output, "a"}, {100001 * time.Microsecond, Output, ""},
		},
	} {
		header, events, err := ReadAll(iotest.OneByteReader(strings.NewReader(content)))
		if err != nil || !reflect.DeepEqual(events, want) || header.Cols != 80 || header.Rows != 24 {
			t.Errorf("%q is read as %+v %q, %v; want %q", content, header, events, err, want)
		}
	}
	broken := errors.New("disk")
	if _, _, err := ReadAll(io.MultiReader(bytes.NewReader(story(t, 3)), iotest.ErrReader(broken))); err != broken {
		t.Errorf("error %v, want that of the disk", err)
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
