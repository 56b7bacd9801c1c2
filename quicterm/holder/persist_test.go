//go:build linux || darwin

package holder

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/quicterm/holder/persist"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// keptIn returns a session that is kept on disk.
func keptIn(dir string) wire.Launch {
	return wire.Launch{
		PTY: true, Size: wire.Size{Cols: 80, Rows: 24}, Buffer: 1 << 20, Name: "work",
		Argv: []string{"sh", "-c", "make test"}, Command: "make test", Persist: &wire.Persist{Dir: dir},
	}
}

// records returns what is in the files of all records, and when the last was written.
func records(t *testing.T, dir string) (content string) {
	t.Helper()
	synctest.Wait() // the holder may be about to write at this time
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, mode %v", file, err, info.Mode())
		}
		content += string(b)
	}
	return content
}

// What a terminal shows is on disk a little later, in a bounded size, until the session is over or its history is
// cleared.
func TestKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "sessions")
	inBubble(t, keptIn(dir), func(w *world) {
		w.print("hello")
		time.Sleep(2 * persist.Delay)
		if content := records(t, dir); !strings.Contains(content, "hello") {
			t.Errorf("the record is %q", content)
		}
		var lines []string
		for i := range 600 { // a minute, without a pause
			lines = append(lines, fmt.Sprintf("%d text", i))
			w.print(fmt.Sprintf("%s%s\r\n", lines[i], bytes.Repeat([]byte(" text"), 400)))
			time.Sleep(100 * time.Millisecond)
			content := records(t, dir)
			if size := len(content); size > persist.MaxScreen+1<<10 {
				t.Fatalf("%d bytes on disk", size)
			}
			if i%50 == 0 && i > 150 && !slices.ContainsFunc(lines[i-110:], func(line string) bool { return strings.Contains(content, line) }) {
				t.Errorf("after %d lines the record has none of the last 110", i)
			}
		}
		time.Sleep(2 * persist.Delay)
		if content := records(t, dir); !strings.Contains(content, "599 text") {
			t.Error("the record has not the end of the output")
		}
		w.locked(func(h *Holder) { h.clearHistoryLocked("a@x") })
		w.print("\x1b[2J\x1b[Hafter")
		time.Sleep(2 * persist.Delay)
		if content := records(t, dir); strings.Contains(content, "560 text") || !strings.Contains(content, "after") {
			t.Error("the record has what was cleared")
		}
	})
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); left != nil {
		t.Errorf("left %q", left)
	}
}

// What was cleared is not left on disk when no other screen can be written.
func TestClearedWithoutScreen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sessions")
	inBubble(t, keptIn(dir), func(w *world) {
		w.print("secret")
		time.Sleep(2 * persist.Delay)
		if content := records(t, dir); !strings.Contains(content, "secret") {
			t.Fatalf("the record is %q", content)
		}
		blocked := filepath.Join(dir, w.h.launch.ID.String()+".new", "blocks")
		if err := os.MkdirAll(blocked, 0o700); err != nil {
			t.Fatal(err)
		}
		w.locked(func(h *Holder) { h.clearHistoryLocked("a@x") })
		time.Sleep(3 * persist.Delay)
		if _, err := os.Stat(filepath.Join(dir, w.h.launch.ID.String())); err == nil {
			t.Error("the record has what was cleared")
		}
		if len(w.log.lines("the session is not kept on disk")) == 0 {
			t.Error("a screen was kept: the test does not test")
		}
	})
}

// A disk that fails is logged once, and tried again.
func TestKeptAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	inBubble(t, keptIn(filepath.Join(file, "sessions")), func(w *world) {
		for range 10 {
			w.print("hello")
			time.Sleep(2 * persist.Delay)
		}
		if n := len(w.log.lines("the session is not kept on disk")); n != 1 {
			t.Errorf("%d lines", n)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * persist.Delay)
		if content := records(t, filepath.Join(file, "sessions")); !strings.Contains(content, "hello") {
			t.Errorf("the record is %q", content)
		}
	})
}

// A record that was removed is made anew, with what the terminal shows.
func TestKeptAnew(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sessions")
	inBubble(t, keptIn(dir), func(w *world) {
		w.print("before")
		time.Sleep(2 * persist.Delay)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		w.print("after")
		time.Sleep(3 * persist.Delay)
		if content := records(t, dir); !strings.Contains(content, "beforeafter") {
			t.Errorf("the record is %q", content)
		}
	})
}

// A program that ends because the system stops has not exited: it is lost.
func TestStoppedHasNotExited(t *testing.T) {
	for _, stopping := range []bool{true, false} {
		inBubble(t, keptIn(filepath.Join(t.TempDir(), "sessions")), func(w *world) {
			w.locked(func(h *Holder) { h.life.stopping = stopping })
			w.program.Exit(1)
			time.Sleep(time.Second)
			w.locked(func(h *Holder) {
				if f := h.factsLocked(); f.Exited == stopping {
					t.Errorf("stopping %t: exited %t", stopping, f.Exited)
				}
			})
		})
	}
}
