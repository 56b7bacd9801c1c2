package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/quicterm/quicterm/quicterm/screen"
)

func TestDump(t *testing.T) {
	const recording = "../testdata/programs/vim_splits"
	got, err := dump([]string{recording + ".raw"}, -1, -1)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(recording + ".json")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, got, want)

	snapshot, err := dump([]string{recording + ".raw"}, 5000, -1)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(recording + ".raw")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "continued")
	if err := os.WriteFile(file, append(snapshot, raw[5000:]...), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err = dump([]string{file, "80", "24"}, -1, -1); err != nil {
		t.Fatal(err)
	}
	equal(t, got, want)

	undo, err := dump([]string{recording + ".raw"}, -1, 5000)
	if err != nil || len(undo) == 0 {
		t.Errorf("undone by %q, %v", undo, err)
	}
	for _, args := range [][]string{{"missing"}, {file, "80", "x"}, {file, "x", "24"}} {
		if _, err := dump(args, -1, -1); err == nil {
			t.Errorf("no error for %q", args)
		}
	}
	if _, err := dump([]string{file}, -1, 1<<20); err == nil {
		t.Error("no error for a position after the end")
	}
}

// equal compares dumps without the differences of JSON encoders.
func equal(t *testing.T, got, want []byte) {
	t.Helper()
	var g, w screen.Dump
	if err := json.Unmarshal(got, &g); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(want, &w); err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(g)
	b, _ := json.Marshal(w)
	if string(a) != string(b) {
		t.Errorf("got  %s\nwant %s", a, b)
	}
}
