//go:build linux || darwin

package persist

import (
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// A session that ends while a slow disk writes its record leaves none.
func TestEndWhileWriting(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sessions")
	files := func() []string {
		left, _ := filepath.Glob(filepath.Join(dir, "*"))
		return left
	}
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		k := NewKeeper(dir, wire.SessionID{1}, slog.New(slog.DiscardHandler), end, func() (*wire.Lost, error) {
			time.Sleep(2 * Delay)
			return &wire.Lost{Name: "work", Screen: []byte("hello")}, nil
		})
		go k.Run()
		k.Change()
		time.Sleep(4 * Delay)
		if len(files()) != 1 {
			t.Errorf("the records are %q", files())
		}
		k.Change()
		time.Sleep(2 * Delay)
		close(end)
		k.Remove()
	})
	if left := files(); left != nil {
		t.Errorf("left %q", left)
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
		return Answer(&wire.Launch{ID: id, Scope: scope, Persist: &wire.Persist{Task: task, Dir: dir}}, slog.New(slog.DiscardHandler))
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
		if _, err := Answer(launch, log); err != nil && !errors.Is(err, errUnreadable) {
			t.Errorf("%x: %v", damaged, err)
		}
		launch.Persist.Task = wire.PersistList
		answer, err := Answer(launch, log)
		if err != nil || len(answer.(*wire.Records).States) != 1 {
			t.Errorf("list with %x: %v, %v", damaged, answer, err)
		}
	}
	if answer, err := Answer(&wire.Launch{ID: id, Persist: &wire.Persist{Task: wire.PersistRemove, Dir: dir}}, nil); err != nil || answer.Type() != wire.TypeDone {
		t.Errorf("removed: %v, %v", answer, err)
	}
	if _, _, err := store.Read(id.String()); err == nil || errors.Is(err, ErrLives) {
		t.Errorf("read after that: %v", err)
	}
}
