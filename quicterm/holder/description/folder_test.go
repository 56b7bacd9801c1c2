//go:build linux || darwin

package description

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/holder/socket"
	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/machine/terminfo"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const term = "qt-test"

func launch(t *testing.T, base string, id byte, env ...string) *wire.Launch {
	t.Helper()
	entry := &terminfo.Entry{Names: []string{term}}
	for range 52 {
		entry.Standard.Strings = append(entry.Standard.Strings, terminfo.String{Text: "/f"})
	}
	b, err := entry.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return &wire.Launch{Base: base, ID: wire.SessionID{id}, PTY: true, Env: append(env, "TERM="+term), Terminfo: b}
}

func provide(t *testing.T, l *wire.Launch) *Folder {
	t.Helper()
	f, err := Provide(l)
	if err != nil || f == nil {
		t.Fatalf("%v, %v", f, err)
	}
	return f
}

// The program finds an entry without what names files, also after the system has removed it, until the session ends.
func TestProvide(t *testing.T) {
	base := filepath.Join(t.TempDir(), "run")
	l := launch(t, base, 1, "TERMINFO_DIRS=/first", "TERMINFO_DIRS=/a:/b")
	f := provide(t, l)
	if l.Terminfo != nil {
		t.Error("the launch still has the entry")
	}
	dirs, _ := strings.CutPrefix(l.Env[len(l.Env)-1], "TERMINFO_DIRS=")
	dir, rest, _ := strings.Cut(dirs, ":")
	if rest != "/a:/b" || !strings.HasPrefix(dir, base) {
		t.Errorf("TERMINFO_DIRS is %q", dirs)
	}
	look := func() (e *terminfo.Entry) {
		t.Helper()
		b, err := terminfo.Find(term, func(name string) string { return map[string]string{"TERMINFO_DIRS": dirs}[name] })
		if err == nil {
			e, err = terminfo.Decode(b)
		}
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	want := terminfo.String{State: terminfo.Absent}
	if e := look(); e.Standard.Strings[51] != want || e.Standard.Strings[50].Text != "/f" {
		t.Errorf("the program finds %+v", e)
	}
	for name, mode := range map[string]os.FileMode{"": 0o700, "q": 0o700, "q/" + term: 0o600} {
		path := filepath.Join(dir, name)
		if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	file := filepath.Join(dir, "q", term)
	old := time.Now().Add(-2 * freshTime)
	for what, damage := range map[string]func() error{
		"removed": func() error { return os.RemoveAll(dir) },
		"old":     func() error { return os.Chtimes(file, old, old) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if err := f.Restore(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		look()
		if info, err := os.Stat(file); err != nil || time.Since(info.ModTime()) > freshTime {
			t.Errorf("%s: not fresh: %v", what, err)
		}
	}
	f.Remove()
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Errorf("after the session: %v", err)
	}
}

// A folder whose session was killed is removed by the next one, and that of a session that lives is not.
func TestSweep(t *testing.T) {
	base := filepath.Join(t.TempDir(), "run")
	killed, lives := provide(t, launch(t, base, 1)), launch(t, base, 2)
	s, err := socket.Listen(rundir.Base(base), socket.Name(lives.ID))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	provide(t, lives)
	other := filepath.Join(filepath.Dir(killed.path(t)), "notes.terminfo")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	provide(t, launch(t, base, 3))
	got, _ := filepath.Glob(filepath.Join(filepath.Dir(other), "*"+suffix))
	for i := range got {
		got[i] = filepath.Base(got[i])
	}
	want := []string{
		socket.Name(wire.SessionID{2}) + suffix, socket.Name(wire.SessionID{3}) + suffix, "notes" + suffix,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("there is %q, want %q", got, want)
	}
}

func (f *Folder) path(t *testing.T) string {
	root, err := f.open()
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	return filepath.Join(root.Name(), f.name)
}

// Nothing is written, and the environment stays, if the entry is not needed or cannot be used.
func TestNotProvided(t *testing.T) {
	base := filepath.Join(t.TempDir(), "run")
	for name, c := range map[string]struct {
		change func(*wire.Launch)
		fails  bool
	}{
		"no entry":          {func(l *wire.Launch) { l.Terminfo = nil }, false},
		"no terminal":       {func(l *wire.Launch) { l.PTY = false }, false},
		"no TERM":           {func(l *wire.Launch) { l.Env = nil }, false},
		"a path as TERM":    {func(l *wire.Launch) { l.Env = []string{"TERM=../x"} }, true},
		"another TERM":      {func(l *wire.Launch) { l.Env = []string{"TERM=qt-other"} }, true},
		"a truncated entry": {func(l *wire.Launch) { l.Terminfo = l.Terminfo[:40] }, true},
	} {
		l := launch(t, base, 1)
		c.change(l)
		before := len(l.Env)
		if f, err := Provide(l); f != nil || (err != nil) != c.fails || len(l.Env) != before {
			t.Errorf("%s: %v, %v, %q", name, f, err, l.Env)
		}
		if found, _ := filepath.Glob(base + "/*/*"); len(found) > 0 {
			t.Errorf("%s: there is %v", name, found)
		}
	}
}
