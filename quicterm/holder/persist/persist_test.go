//go:build linux || darwin

package persist

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

const testID = "000102030405060708090a0b0c0d0e0f"

func newStore(t testing.TB) (*Store, string) {
	t.Helper()
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o700))
	root, err := os.OpenRoot(dir)
	must(t, err)
	s, err := New(root)
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s, dir
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// lose writes the file of a session that is lost then.
func lose(t testing.TB, s *Store, id, content string) {
	t.Helper()
	held, err := s.Write(id, []byte(content))
	must(t, err)
	must(t, held.Close())
}

func wantLost(t testing.TB, s *Store, why string, want ...string) {
	t.Helper()
	ids, err := s.Lost(time.Now())
	if must(t, err); !slices.Equal(ids, want) {
		t.Errorf("%s: lost are %q, want %q", why, ids, want)
	}
}

// The file of a session that lives cannot be read or removed. When its process is gone, it has what was written last.
func TestStore(t *testing.T) {
	s, dir := newStore(t)
	wantLost(t, s, "an empty store")
	held, err := s.Write(testID, []byte("first"))
	must(t, err)
	if _, _, err := s.Read(testID); err != ErrLives {
		t.Errorf("read of a session that lives: %v", err)
	}
	next, err := s.Write(testID, []byte("second"))
	must(t, err)
	must(t, held.Close())
	if err := s.Remove(testID); err != ErrLives {
		t.Errorf("removal of a session that lives: %v", err)
	}
	wantLost(t, s, "a session that lives")
	must(t, next.Close())
	wantLost(t, s, "a lost session", testID)
	b, written, err := s.Read(testID)
	if must(t, err); string(b) != "second" || time.Since(written) > time.Minute {
		t.Errorf("read %q of %v", b, written)
	}
	info, err := os.Stat(filepath.Join(dir, testID))
	if must(t, err); info.Mode() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	must(t, s.Remove(testID))
	if _, _, err := s.Read(testID); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("read after the removal: %v", err)
	}
	for _, id := range []string{"", "..", "000102030405060708090A0B0C0D0E0F", testID + "00"} {
		if _, _, err := s.Read(id); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("read of %q: %v", id, err)
		}
	}
}

// A crash while a state is written leaves the state before. What it has left is removed later.
func TestCrash(t *testing.T) {
	s, dir := newStore(t)
	lose(t, s, testID, "whole")
	torn := filepath.Join(dir, testID+temporary)
	must(t, os.WriteFile(torn, []byte("to"), 0o600))
	if b, _, err := s.Read(testID); err != nil || string(b) != "whole" {
		t.Errorf("read %q, %v", b, err)
	}
	lose(t, s, testID, "next")
	must(t, os.WriteFile(torn, []byte("to"), 0o600))
	wantLost(t, s, "a write that may be under way", testID)
	if _, err := os.Stat(torn); err != nil {
		t.Error(err)
	}
	old := time.Now().Add(-2 * staleAge)
	must(t, os.Chtimes(torn, old, old))
	wantLost(t, s, "a write that was cut", testID)
	if _, err := os.Stat(torn); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what a crash has left is left: %v", err)
	}
}

// Old files and too many are removed, except those of sessions that live. None is old when the clock goes back.
func TestPrune(t *testing.T) {
	s, dir := newStore(t)
	var want []string
	for i := range MaxLost + 5 {
		id := fmt.Sprintf("%032x", i)
		lose(t, s, id, "x")
		at := time.Now().Add(time.Duration(-i) * time.Minute)
		must(t, os.Chtimes(filepath.Join(dir, id), at, at))
		if i < MaxLost {
			want = append(want, id)
		}
	}
	held, err := s.Write(testID, []byte("lives"))
	must(t, err)
	defer held.Close()
	old := time.Now().Add(-2 * MaxAge)
	must(t, os.Chtimes(filepath.Join(dir, testID), old, old))
	wantLost(t, s, "too many", want...)
	if files, _ := os.ReadDir(dir); len(files) != MaxLost+1 {
		t.Errorf("%d files are left, want %d and one that lives", len(files), MaxLost)
	}
	for i, id := range want {
		at := time.Now().Add(-MaxAge).Add(-time.Minute)
		if i < 3 {
			at = time.Now().Add(time.Duration(3-i) * time.Hour)
		}
		must(t, os.Chtimes(filepath.Join(dir, id), at, at))
	}
	wantLost(t, s, "old ones", want[:3]...)
}

// No link is followed, and nothing but regular files is opened.
func TestLinks(t *testing.T) {
	s, dir := newStore(t)
	secret := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(secret, []byte("secret"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "other"), []byte("other"), 0o600))
	for _, target := range []string{secret, "other", testID} {
		must(t, os.Symlink(target, filepath.Join(dir, testID)))
		if b, _, err := s.Read(testID); err == nil {
			t.Errorf("a link to %s was read: %q", target, b)
		}
		wantLost(t, s, "a link")
		lose(t, s, testID, "mine")
		if b, err := os.ReadFile(secret); err != nil || string(b) != "secret" {
			t.Errorf("a write has followed the link: %q, %v", b, err)
		}
		must(t, s.Remove(testID))
	}
	must(t, os.Mkdir(filepath.Join(dir, testID), 0o700))
	if _, _, err := s.Read(testID); err == nil {
		t.Error("a directory was read")
	}
	must(t, os.Chmod(dir, 0o750))
	if root, err := os.OpenRoot(dir); err == nil {
		defer root.Close()
		if _, err := New(root); err == nil {
			t.Error("a store that others can enter was opened")
		}
	}
}
