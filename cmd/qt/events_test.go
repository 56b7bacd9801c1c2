package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/quicterm/quicterm/quicterm/drive"
)

// What qt events has printed says where it continues, also behind the end of a session, if its last line is cut off, or
// a session was unknown meanwhile.
func TestReadEvents(t *testing.T) {
	file := filepath.Join(t.TempDir(), "events")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"host":"a","session":"one","id":"1","number":3,"event":"bell"}
{"host":"a","session":"two","id":"2","number":9,"event":"exited","status":0}
{"host":"b","session":"one","id":"3","number":7,"event":"bell"}
{"host":"b","session":"one","id":"3","event":"unknown","text":"why"}
{"host":"a","session":"one","id":"1","number":4,"event":"bell"}
{"host":"a","sess`)
	last, err := new(eventPrinter).read(file)
	if err != nil || len(last) != 2 || len(last["a"]) != 2 || last["a"]["1"].Number != 4 ||
		last["a"]["2"].Kind != drive.EventExited || last["b"]["3"].Number != 7 {
		t.Errorf("%+v, %v", last, err)
	}
	write("")
	if last, err := new(eventPrinter).read(file); err != nil || last == nil || len(last) != 0 {
		t.Errorf("an empty file: %+v, %v", last, err)
	}
	write("no events\n")
	if _, err := new(eventPrinter).read(file); err == nil {
		t.Error("a file without events is accepted")
	}
	write(`{"host":"a","session":"one","id":"1","number":1,"event":"bell"}
{"host":"a","sess`)
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	p := &eventPrinter{out: out, asJSON: true}
	p.read(file)
	for number := range uint64(2) {
		e := hostEvent{"a", drive.Event{ID: "1", Number: number + 2, Kind: drive.EventBell}}
		if err := p.handle(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if last, readErr := new(eventPrinter).read(file); err != nil || readErr != nil || last["a"]["1"].Number != 3 ||
		bytes.Count(text, []byte("\n")) != 4 {
		t.Errorf("behind a line that is cut off: %s, %v, %v", text, err, readErr)
	}
}
