//go:build linux || darwin

package holder

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// keptIn returns a session that is kept on disk, in at most 256 KiB.
func keptIn(dir string, log bool) wire.Launch {
	return wire.Launch{
		PTY: true, Size: wire.Size{Cols: 80, Rows: 24}, Buffer: 1 << 20,
		Persist: &wire.Persist{Log: log, Dir: dir, Bytes: 256 << 10, TTL: time.Hour},
	}
}

// records returns the files of all records, the highest number of one, and their size.
func records(t *testing.T, dir string) (content string, last int, size int64) {
	t.Helper()
	synctest.Wait() // the holder may be about to write at this time
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
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
		size += int64(len(b))
		n, _ := strconv.Atoi(filepath.Base(file))
		last = max(last, n)
	}
	return content, last, size
}

// What a terminal shows is on disk a little later, in a bounded size and at a bounded rate, until the
// session is over or its history is cleared.
func TestKept(t *testing.T) {
	for _, log := range []bool{false, true} {
		t.Run(fmt.Sprintf("log %t", log), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "new", "sessions")
			inBubble(t, keptIn(dir, log), func(w *world) {
				w.print("hello")
				time.Sleep(2 * keepQuiet)
				if content, _, _ := records(t, dir); !strings.Contains(content, "hello") {
					t.Errorf("the record is %q", content)
				}
				var lines []string
				for i := range 600 { // a minute, without a pause
					lines = append(lines, fmt.Sprintf("%d text", i))
					w.print(fmt.Sprintf("%s%s\r\n", lines[i], bytes.Repeat([]byte(" text"), 400)))
					time.Sleep(100 * time.Millisecond)
					content, _, size := records(t, dir)
					if size > 256<<10 {
						t.Fatalf("%d bytes on disk", size)
					}
					if i%50 == 0 && i > 150 && !slices.ContainsFunc(lines[i-101:], func(line string) bool { return strings.Contains(content, line) }) {
						t.Errorf("after %d lines the record has none of the last 100", i)
					}
				}
				time.Sleep(2 * keepQuiet)
				content, last, _ := records(t, dir)
				if last > 20 || !strings.Contains(content, "599 text") {
					t.Errorf("%d files were written, and the last has not the end of the output", last)
				}
				w.locked(func(h *Holder) { h.clearHistoryLocked("a@x") })
				w.print("\x1b[2J\x1b[Hafter")
				time.Sleep(keepMost)
				if content, _, _ := records(t, dir); strings.Contains(content, "500 text") || !strings.Contains(content, "after") {
					t.Error("the record has what was cleared")
				}
			})
			if left, _ := filepath.Glob(filepath.Join(dir, "*")); left != nil {
				t.Errorf("left %q", left)
			}
		})
	}
}

// What was cleared is not left on disk when no other screen can be kept.
func TestClearedWithoutScreen(t *testing.T) {
	for _, log := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "sessions")
		launch := keptIn(dir, log)
		launch.Persist.Bytes = 4 << 10
		inBubble(t, launch, func(w *world) {
			w.print("secret")
			time.Sleep(2 * keepQuiet)
			if content, _, _ := records(t, dir); !strings.Contains(content, "secret") {
				t.Fatalf("the record is %q", content)
			}
			for i := range 24 * 80 {
				w.print(fmt.Sprintf("\x1b[48;5;%d;38;5;%dmx", i%200, 250-i%200))
			}
			w.locked(func(h *Holder) { h.clearHistoryLocked("a@x") })
			time.Sleep(2 * keepRetry)
			if content, _, _ := records(t, dir); strings.Contains(content, "secret") {
				t.Errorf("log %t: the record has what was cleared", log)
			}
			if len(w.log.lines("the session is not kept on disk")) == 0 {
				t.Error("a screen was kept: the test does not test")
			}
		})
	}
}

// A disk that fails is logged once, and tried again.
func TestKeptAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	inBubble(t, keptIn(filepath.Join(file, "sessions"), false), func(w *world) {
		for range 10 {
			w.print("hello")
			time.Sleep(keepMost)
		}
		if n := len(w.log.lines("the session is not kept on disk")); n != 1 {
			t.Errorf("%d lines", n)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * keepRetry)
		if content, _, _ := records(t, filepath.Join(file, "sessions")); !strings.Contains(content, "hello") {
			t.Errorf("the record is %q", content)
		}
	})
}

// A record whose directory was removed is made anew, with what the terminal shows: also if the file system
// keeps a name of the lock. Appends to a log do not fail then, so that is of the screen alone.
func TestKeptAnew(t *testing.T) {
	for _, test := range []struct{ log, linked bool }{{}, {log: true}, {linked: true}} {
		dir := filepath.Join(t.TempDir(), "sessions")
		inBubble(t, keptIn(dir, test.log), func(w *world) {
			w.print("before")
			time.Sleep(2 * keepQuiet)
			if test.linked {
				locks, err := filepath.Glob(filepath.Join(dir, "*", "lock"))
				if err != nil || len(locks) != 1 {
					t.Fatal(locks, err)
				}
				if err := os.Link(locks[0], filepath.Join(dir, "../lock")); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			w.print("after")
			time.Sleep(2 * keepRetry)
			if content, _, _ := records(t, dir); !strings.Contains(content, "beforeafter") {
				t.Errorf("%+v: the record is %q", test, content)
			}
		})
	}
}

// A program that ends because the system stops has not exited: who attaches later is asked whether it is to
// be started again.
func TestStoppedHasNotExited(t *testing.T) {
	for _, stopping := range []bool{true, false} {
		inBubble(t, keptIn(filepath.Join(t.TempDir(), "sessions"), false), func(w *world) {
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
