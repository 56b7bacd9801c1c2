package recording

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/screen/asciicast"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// What a session shows goes on to the terminal and into the recording, and an error of the
// recording ends the recording only.
func TestRecorder(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file.cast")
	file, err := Create(name)
	if err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	r := &Recorder{Failed: func(err error) { t.Errorf("Failed: %v", err) }}
	s := r.Streams(client.Streams{
		Stdout:  &shown,
		Began:   func(snapshot []byte) { shown.Write(snapshot) },
		Lost:    func(g client.Gap) { shown.Write(g.Snapshot) },
		Resized: func(wire.Sizing) { shown.WriteString("size") },
	})
	s.Stdout.Write([]byte("too early "))
	if err := r.Begin(file, asciicast.Header{Cols: 80, Rows: 24, Start: time.Now()}); err != nil {
		t.Fatal(err)
	}
	s.Resized(wire.Sizing{Size: wire.Size{Cols: 80, Rows: 24}}) // as in the header
	s.Began([]byte(" began "))
	s.Stdout.Write([]byte("live "))
	s.Resized(wire.Sizing{Size: wire.Size{Cols: 90, Rows: 24}})
	s.Lost(client.Gap{From: 3, To: 7, Bytes: 99, Snapshot: []byte("again ")})
	s.Lost(client.Gap{From: 8, To: 8, Bytes: 1})
	if err := r.End(true, 7); err != nil {
		t.Fatal(err)
	}
	s.Stdout.Write([]byte("too late"))
	if want := "too early size began live sizeagain too late"; shown.String() != want {
		t.Errorf("shown: %q, want %q", &shown, want)
	}

	if file, err = os.Open(name); err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	_, events, err := asciicast.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range events {
		got = append(got, string(e.Code)+e.Data)
	}
	want := []string{
		"o began ", "olive ", "r90x24",
		"m99 bytes of output lost, the server has kept no more (frames 3 to 7)", "o\x18\x1bcagain ",
		"m1 bytes of output lost, the server has kept no more (frames 8 to 8)", "x7",
	}
	if !slices.Equal(got, want) {
		t.Errorf("recorded: %q, want %q", got, want)
	}
}

func TestRecorderFails(t *testing.T) {
	file, err := Create(filepath.Join(t.TempDir(), "file.cast"))
	if err != nil {
		t.Fatal(err)
	}
	var failed []error
	r := &Recorder{Failed: func(err error) { failed = append(failed, err) }}
	var shown strings.Builder
	s := r.Streams(client.Streams{Stdout: &shown})
	if err := r.Begin(file, asciicast.Header{Cols: 80, Rows: 24, Start: time.Now()}); err != nil {
		t.Fatal(err)
	}
	file.Close()
	for range 2 {
		if n, err := s.Stdout.Write([]byte("text")); n != 4 || err != nil {
			t.Errorf("the session gets %d, %v", n, err)
		}
	}
	if len(failed) != 1 || !errors.Is(failed[0], os.ErrClosed) || shown.String() != "texttext" {
		t.Errorf("failed %v, shown %q", failed, &shown)
	}
	if err := r.End(false, 0); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the end: %v", err)
	}
}

// A recording overwrites no file, follows no link, and its name is one file in the directory.
func TestNewFile(t *testing.T) {
	dir := t.TempDir()
	now := time.Date(2026, 11, 22, 15, 4, 5, 0, time.UTC)
	victim := filepath.Join(dir, "victim")
	if err := os.Symlink(victim, filepath.Join(dir, "20261122-150405-a_b-.._etc-2.cast")); err != nil {
		t.Skip(err)
	}
	for _, want := range []string{"20261122-150405-a_b-.._etc.cast", "20261122-150405-a_b-.._etc-3.cast"} {
		f, err := newFile(dir, now, "a b", "../etc")
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		if f.Name() != filepath.Join(dir, want) {
			t.Errorf("%s, want %s", f.Name(), want)
		}
	}
	if _, err := os.Lstat(victim); err == nil {
		t.Error("a link was followed")
	}
	if _, err := newFile(filepath.Join(dir, "none"), now, "a", "b"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
}
