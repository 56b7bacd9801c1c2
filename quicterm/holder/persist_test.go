//go:build linux || darwin

package holder

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
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
		time.Sleep(2 * keepDelay)
		if content := records(t, dir); !strings.Contains(content, "hello") {
			t.Errorf("the record is %q", content)
		}
		var lines []string
		for i := range 600 { // a minute, without a pause
			lines = append(lines, fmt.Sprintf("%d text", i))
			w.print(fmt.Sprintf("%s%s\r\n", lines[i], bytes.Repeat([]byte(" text"), 400)))
			time.Sleep(100 * time.Millisecond)
			content := records(t, dir)
			if size := len(content); size > maxKeptScreen+1<<10 {
				t.Fatalf("%d bytes on disk", size)
			}
			if i%50 == 0 && i > 150 && !slices.ContainsFunc(lines[i-110:], func(line string) bool { return strings.Contains(content, line) }) {
				t.Errorf("after %d lines the record has none of the last 110", i)
			}
		}
		time.Sleep(2 * keepDelay)
		if content := records(t, dir); !strings.Contains(content, "599 text") {
			t.Error("the record has not the end of the output")
		}
		w.locked(func(h *Holder) { h.clearHistoryLocked("a@x") })
		w.print("\x1b[2J\x1b[Hafter")
		time.Sleep(2 * keepDelay)
		if content := records(t, dir); strings.Contains(content, "560 text") || !strings.Contains(content, "after") {
			t.Error("the record has what was cleared")
		}
	})
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); left != nil {
		t.Errorf("left %q", left)
	}
}

// A session that ends while a slow disk writes its record leaves none.
func TestEndWhileWriting(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sessions")
	inBubble(t, keptIn(dir), func(w *world) {
		record := w.h.keeper.record
		w.h.keeper.record = func() (*wire.Lost, error) {
			time.Sleep(10 * time.Second)
			return record()
		}
		w.print("hello")
		time.Sleep(20 * time.Second)
		if content := records(t, dir); !strings.Contains(content, "hello") {
			t.Errorf("the record is %q", content)
		}
		w.print(", world")
		time.Sleep(2 * keepDelay)
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
		time.Sleep(2 * keepDelay)
		if content := records(t, dir); !strings.Contains(content, "secret") {
			t.Fatalf("the record is %q", content)
		}
		blocked := filepath.Join(dir, w.h.launch.ID.String()+".new", "blocks")
		if err := os.MkdirAll(blocked, 0o700); err != nil {
			t.Fatal(err)
		}
		w.locked(func(h *Holder) { h.clearHistoryLocked("a@x") })
		time.Sleep(3 * keepDelay)
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
			time.Sleep(2 * keepDelay)
		}
		if n := len(w.log.lines("the session is not kept on disk")); n != 1 {
			t.Errorf("%d lines", n)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * keepDelay)
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
		time.Sleep(2 * keepDelay)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		w.print("after")
		time.Sleep(3 * keepDelay)
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

// A process of the account lists, shows and removes the records of lost sessions, for clients of a scope.
func TestRecords(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sessions")
	store, err := openStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	write := func(id wire.SessionID, b []byte) {
		held, err := store.Write(id.String(), b)
		if err != nil {
			t.Fatal(err)
		}
		held.Close()
	}
	id, other := wire.SessionID{1}, wire.SessionID{2}
	b, err := wire.EncodeLost(&wire.Lost{
		Name: "work", Scope: "5348", Summary: "make", Command: "make test", Boot: wire.BootMark{1}, Screen: []byte("last"), Size: wire.Size{Cols: 80},
	})
	if err != nil {
		t.Fatal(err)
	}
	write(id, b)
	do := func(task wire.PersistTask, id wire.SessionID, scope string) (wire.Body, error) {
		return answerRecords(&wire.Launch{ID: id, Scope: scope, Persist: &wire.Persist{Task: task, Dir: dir}}, slog.New(slog.DiscardHandler))
	}
	list := func(scope string) (infos []wire.Info) {
		t.Helper()
		answer, err := do(wire.PersistList, id, scope)
		if err != nil {
			t.Fatal(err)
		}
		for _, payload := range answer.(*wire.Records).States {
			var state wire.State
			m := wire.Message{Type: wire.TypeState, Payload: payload}
			err := m.Decode(&state)
			info, infoErr := wire.DecodeInfo(state.Info)
			if err != nil || infoErr != nil || state.Phase != wire.PhaseLost || state.Own != (scope == "5348") {
				t.Fatalf("%+v, %v, %v", state, err, infoErr)
			}
			infos = append(infos, info)
		}
		return infos
	}
	for scope, want := range map[string]int{"": 1, "5348": 1, "4853": 0} {
		if infos := list(scope); len(infos) != want || want > 0 && (infos[0].Name != "work" || infos[0].Command != "make" || infos[0].Cols != 80) {
			t.Errorf("scope %q: %+v", scope, infos)
		}
	}
	var refusal *wire.Error
	answer, err := do(wire.PersistShow, id, "")
	if err != nil {
		t.Fatal(err)
	}
	refusal = answer.(*wire.Error)
	if l := refusal.Lost; refusal.Code != wire.CodeLost || string(l.Screen) != "last" || l.Command != "make test" || l.Scope != "" || l.Boot != (wire.BootMark{}) ||
		time.Since(time.Unix(l.Seen, 0)) > time.Minute {
		t.Errorf("shown: %+v", refusal)
	}
	for _, task := range []wire.PersistTask{wire.PersistShow, wire.PersistRemove} {
		if answer, err := do(task, id, "4853"); err == nil && answer.(*wire.Error).Code != wire.CodeNoSession {
			t.Errorf("task %d in another scope: %v", task, answer)
		}
	}
	if answer, err := do(wire.PersistRemove, id, "5348"); err != nil || answer.Type() != wire.TypeDone || len(list("")) != 0 {
		t.Errorf("removed: %v, %v", answer, err)
	}
	held, err := store.Write(other.String(), b)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if answer, err := do(wire.PersistRemove, other, ""); err == nil && answer.Type() == wire.TypeDone {
		t.Error("the record of a session that lives was removed")
	}
}

// A record that is cut or changed anywhere makes no process fail. One that cannot be read can be removed.
func TestDamagedRecord(t *testing.T) {
	b, err := wire.EncodeLost(&wire.Lost{Name: "work", Screen: []byte("last"), Dir: "/"})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "sessions")
	store, err := openStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	id := wire.SessionID{1}
	for n := range 2 * len(b) {
		damaged := b[:min(n, len(b))]
		if n >= len(b) {
			damaged = slices.Clone(b)
			damaged[n-len(b)] ^= 0xff
		}
		held, err := store.Write(id.String(), damaged)
		if err != nil {
			t.Fatal(err)
		}
		held.Close()
		log := slog.New(slog.DiscardHandler)
		launch := &wire.Launch{ID: id, Persist: &wire.Persist{Task: wire.PersistShow, Dir: dir}}
		if _, err := answerRecords(launch, log); err != nil && !errors.Is(err, errUnreadable) {
			t.Errorf("%x: %v", damaged, err)
		}
		launch.Persist.Task = wire.PersistList
		answer, err := answerRecords(launch, log)
		if err != nil || len(answer.(*wire.Records).States) != 1 {
			t.Errorf("list with %x: %v, %v", damaged, answer, err)
		}
	}
	if answer, err := answerRecords(&wire.Launch{ID: id, Persist: &wire.Persist{Task: wire.PersistRemove, Dir: dir}}, nil); err != nil || answer.Type() != wire.TypeDone {
		t.Errorf("removed: %v, %v", answer, err)
	}
	if _, _, err := store.Read(id.String()); err == nil || errors.Is(err, persist.ErrLives) {
		t.Errorf("read after that: %v", err)
	}
}
