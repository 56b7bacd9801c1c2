package asciicast

import (
	"bytes"
	"reflect"
	"testing"
	"time"
)

// Any file is read without a fault, and what is read can be written and read again.
func FuzzReader(f *testing.F) {
	for version := 2; version <= 3; version++ {
		f.Add(story(f, version))
	}
	f.Add([]byte(`{"version":2,"width":0,"idle_time_limit":-1}` + "\n" + `[1e3,"r","x"]` + "\n# a comment\n[0,\"\",\"\"]"))
	f.Fuzz(func(t *testing.T, file []byte) {
		header, events, _ := ReadAll(bytes.NewReader(file))
		if header.Version == 0 {
			return
		}
		var b bytes.Buffer
		header.Start, header.Version = start, 3
		w, err := NewWriter(&b, header)
		if err != nil {
			t.Fatalf("header %+v: %v", header, err)
		}
		var last time.Duration
		for _, e := range events {
			if e.At < last || e.At > maxTime {
				t.Fatalf("an event at %v follows one at %v", e.At, last)
			}
			last = e.At
			if err := w.event(start.Add(e.At), e.Code, e.Data); err != nil {
				t.Fatal(err)
			}
		}
		again, same, err := ReadAll(&b)
		if err != nil || again != header || !reflect.DeepEqual(same, events) {
			t.Fatalf("%+v %q is read again as %+v %q, %v", header, events, again, same, err)
		}
	})
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
