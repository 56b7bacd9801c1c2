//go:build linux || darwin

package persist

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

const testID = "000102030405060708090a0b0c0d0e0f"

var (
	testKey   = bytes.Repeat([]byte{7}, 32)
	testFacts = Facts{
		Name: "work", Scope: "a scope", Command: "sh", Argv: []string{"-sh", "\xff"}, Dir: "/home", Cols: 80, Rows: 24, Created: 1, Seen: 2,
		Boot: []byte{3}, Exited: true, Status: 4, Reason: "why",
	}
)

func newStore(t testing.TB) (*Store, string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, dir
}

func create(t testing.TB, s *Store, id string) *Record {
	t.Helper()
	r, err := s.Create(id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func state(text string) *State { return &State{Facts: testFacts, Screen: []byte(text)} }

func wantScreen(t *testing.T, why string, s *Store, key []byte, want string) *Contents {
	t.Helper()
	r, err := s.Take(testID)
	must(t, err)
	defer r.Close()
	c, err := r.Load(key)
	if err != nil || string(c.Screen) != want {
		t.Fatalf("%s: %v, %+v; want the screen %q", why, err, c, want)
	}
	return c
}

// What was written is read, with a key and without, also if it takes many frames.
func TestRecord(t *testing.T) {
	for _, key := range [][]byte{nil, testKey} {
		s, dir := newStore(t)
		r := create(t, s, testID)
		if _, err := s.Take(testID); !errors.Is(err, ErrBusy) {
			t.Errorf("a record that is written: %v, want ErrBusy", err)
		}
		long := strings.Repeat("long ", 100_000)
		must(t, r.Begin(state("first"), key, false, true))
		must(t, r.Begin(state(long), key, false, false))
		if files, _ := filepath.Glob(filepath.Join(dir, testID, "[0-9]*")); len(files) != 1 {
			t.Errorf("files %v, want one", files)
		}
		_, err := r.Append([]Event{{Output: []byte("more")}, {Cols: 90, Rows: 30}}, &testFacts, true)
		must(t, err)
		must(t, r.Close())
		c := wantScreen(t, "after all", s, key, long)
		if want := []Event{{Output: []byte("more")}, {Cols: 90, Rows: 30}}; !reflect.DeepEqual(c.Events, want) ||
			!reflect.DeepEqual(c.Facts, testFacts) || c.Cols != 80 || c.Rows != 24 {
			t.Errorf("read %+v", c)
		}
	}
}

// Several processes may look at a record at a time, and read no more of it than its first facts.
func TestLook(t *testing.T) {
	for _, key := range [][]byte{nil, testKey} {
		s, dir := newStore(t)
		r := create(t, s, testID)
		must(t, r.Begin(state("screen"), key, false, false))
		if _, err := s.Look(testID); !errors.Is(err, ErrBusy) {
			t.Errorf("a record that is written: %v, want ErrBusy", err)
		}
		must(t, r.Close())
		written := time.Unix(1000, 0)
		must(t, os.Chtimes(filepath.Join(dir, testID, "1"), written, written))
		first, err := s.Look(testID)
		must(t, err)
		defer first.Close()
		r, err = s.Look(testID)
		must(t, err)
		defer r.Close()
		want := testFacts
		want.Seen = 1000
		if f, err := r.Head(key); err != nil || !reflect.DeepEqual(*f, want) {
			t.Errorf("facts %+v, %v; want %+v", f, err, want)
		}
		if _, err := r.Head(bytes.Repeat([]byte{8}, 32)); err == nil {
			t.Error("with another key: no error")
		}
		if _, err := s.Take(testID); !errors.Is(err, ErrBusy) {
			t.Errorf("a record that is read: %v, want ErrBusy", err)
		}
	}
}

// A log of two files is one, unless the first is not whole.
func TestContinuedLog(t *testing.T) {
	s, dir := newStore(t)
	r := create(t, s, testID)
	must(t, r.Begin(state("first"), nil, true, false))
	_, err := r.Append([]Event{{Output: []byte("a")}}, nil, false)
	must(t, err)
	must(t, r.Begin(state("second"), nil, true, false))
	_, err = r.Append([]Event{{Output: []byte("b")}}, nil, false)
	must(t, err)
	must(t, r.Close())
	if c := wantScreen(t, "two files", s, nil, "first"); len(c.Events) != 2 || string(c.Events[1].Output) != "b" {
		t.Errorf("events %+v", c.Events)
	}
	must(t, os.Truncate(filepath.Join(dir, testID, "1"), 150))
	if c := wantScreen(t, "the first is cut", s, nil, "second"); len(c.Events) != 1 {
		t.Errorf("events %+v", c.Events)
	}
	for _, file := range []string{"1", "2"} {
		must(t, os.Truncate(filepath.Join(dir, testID, file), 30))
	}
	r, err = s.Take(testID)
	must(t, err)
	if _, err := r.Load(nil); err == nil {
		t.Error("both are cut: no error")
	}
	must(t, r.Remove())
	if ids, err := s.IDs(); err != nil || len(ids) != 0 {
		t.Errorf("records %q, %v", ids, err)
	}
}

// Another key, no key, and a file that is not encrypted are told from damage. A file is bound to its session
// and its number.
func TestKeys(t *testing.T) {
	s, dir := newStore(t)
	r := create(t, s, testID)
	must(t, r.Begin(state("secret"), testKey, false, false))
	must(t, r.Close())
	file := filepath.Join(dir, testID, "1")
	sealed, err := os.ReadFile(file)
	must(t, err)
	if bytes.Contains(sealed, []byte("secret")) || bytes.Contains(sealed, []byte("work")) {
		t.Error("the file is not encrypted")
	}
	for _, test := range []struct {
		why, place string
		b, key     []byte
		want       error
	}{
		{"its key", testID + "/1", sealed, testKey, nil},
		{"another key", testID + "/1", sealed, bytes.Repeat([]byte{8}, 32), ErrOtherKey},
		{"no key", testID + "/1", sealed, nil, ErrNoKey},
		{"another number", testID + "/2", sealed, testKey, ErrDamaged},
		{"another session", strings.Repeat("1", 32) + "/1", sealed, testKey, ErrDamaged},
	} {
		if _, err := decode(bytes.NewReader(test.b), test.key, test.place, MaxFile); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.why, err, test.want)
		}
	}
	open, err := encoded(nil)
	must(t, err)
	if _, err := decode(bytes.NewReader(open), testKey, testID+"/1", MaxFile); !errors.Is(err, ErrNotEncrypted) {
		t.Errorf("not encrypted: %v", err)
	}
}

// encoded returns a file.
func encoded(key []byte) ([]byte, error) {
	e, err := newEncoder(key, testID+"/1")
	if err == nil {
		err = e.facts(&testFacts)
	}
	if err != nil {
		return nil, err
	}
	e.addAll(typeScreen, []byte("screen"))
	e.add(typeScreenEnd, nil)
	e.addAll(typeOutput, []byte("output"))
	e.resize(90, 30)
	return e.b, nil
}

// A file that is cut at any byte has what is before the cut, or is damaged; so is one with any byte changed.
func TestDamage(t *testing.T) {
	for _, key := range [][]byte{nil, testKey} {
		b, err := encoded(key)
		must(t, err)
		for n := range b {
			c, err := decode(bytes.NewReader(b[:n]), key, testID+"/1", MaxFile)
			if err == nil && string(c.Screen) != "screen" || err != nil && !errors.Is(err, ErrDamaged) {
				t.Fatalf("cut at %d: %v, %+v", n, err, c)
			}
			bad := bytes.Clone(b)
			bad[n]++
			c, err = decode(bytes.NewReader(bad), key, testID+"/1", MaxFile)
			if err == nil && (string(c.Screen) != "screen" || !reflect.DeepEqual(c.Facts, testFacts) || len(c.Events) == 2) {
				t.Fatalf("byte %d changed: %+v", n, c)
			}
		}
	}
}

// Records of sessions that live are never removed; others after their time, and above MaxRecords.
func TestPrune(t *testing.T) {
	s, dir := newStore(t)
	now := time.Now()
	name := func(i int) string {
		return strings.Repeat("0", 29) + string([]byte{'a', 'a' + byte(i/16)%6, "0123456789abcdef"[i%16]})
	}
	living := create(t, s, testID)
	must(t, living.Begin(state("lives"), nil, false, false))
	for i := range MaxRecords - 10 {
		r := create(t, s, name(i))
		must(t, r.Begin(state("gone"), nil, false, false))
		must(t, r.Close())
		r, err := s.Take(name(i))
		must(t, err)
		must(t, r.Close())
	}
	must(t, s.Prune(now.AddDate(-1, 0, 0), time.Hour)) // the clock is wrong
	must(t, s.Prune(now, time.Hour))
	if ids, _ := s.IDs(); len(ids) != MaxRecords-9 {
		t.Errorf("%d records", len(ids))
	}
	must(t, os.Mkdir(filepath.Join(dir, "keep.me"), 0o700))
	must(t, s.Prune(now.Add(2*time.Hour), time.Hour))
	if ids, _ := s.IDs(); len(ids) != 1 || ids[0] != testID {
		t.Errorf("records %q, want that of the session that lives", ids)
	}
	if _, err := os.Stat(filepath.Join(dir, "keep.me")); err != nil {
		t.Errorf("what is no record: %v", err)
	}
}

// No link is followed, and no directory used that others may enter.
func TestLinks(t *testing.T) {
	s, dir := newStore(t)
	r := create(t, s, testID)
	must(t, r.Begin(state("screen"), nil, false, false))
	must(t, r.Close())
	file := filepath.Join(dir, testID, "1")
	must(t, os.Rename(file, filepath.Join(dir, testID, "there")))
	must(t, os.Symlink("there", file))
	r, err := s.Take(testID)
	must(t, err)
	if _, err := r.Load(nil); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a link to a file: %v", err)
	}
	must(t, r.Remove())
	must(t, os.Symlink(t.TempDir(), filepath.Join(dir, testID)))
	if _, err := s.Take(testID); err == nil {
		t.Error("a link to a directory: no error")
	}
	must(t, os.Chmod(dir, 0o750))
	root, err := os.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	if _, err := New(root); err == nil {
		t.Error("mode 0750: no error")
	}
}

// No bytes make the reader fail in another way than with an error, or keep more than they have.
func FuzzDecode(f *testing.F) {
	for _, key := range [][]byte{nil, testKey} {
		b, err := encoded(key)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, key != nil)
		f.Add(b[:len(b)/2], key != nil)
	}
	f.Fuzz(func(t *testing.T, b []byte, sealed bool) {
		var key []byte
		if sealed {
			key = testKey
		}
		c, err := decode(bytes.NewReader(b), key, testID+"/1", MaxFile)
		if err != nil {
			return
		}
		size := len(c.Screen)
		for _, e := range c.Events {
			size += len(e.Output)
		}
		if size > len(b) {
			t.Errorf("%d bytes of %d", size, len(b))
		}
	})
}
