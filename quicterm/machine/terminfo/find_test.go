package terminfo

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCommon(t *testing.T) {
	for term, want := range map[string]bool{
		"xterm": true, "xterm-256color": true, "screen": true, "screen.xterm-256color": true, "tmux-256color": true,
		"rxvt-unicode": true, "linux": true, "dumb": true,
		"": false, "xterm-kitty": false, "xterm-ghostty": false, "foot": false, "wezterm": false, "alacritty": false,
	} {
		if got := Common(term); got != want {
			t.Errorf("Common(%q) is %v", term, got)
		}
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	write := func(path, content string) {
		t.Helper()
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{
		"TERMINFO": filepath.Join(dir, "own"), "HOME": filepath.Join(dir, "home"),
		"TERMINFO_DIRS": ":relative:" + filepath.Join(dir, "one") + ":" + filepath.Join(dir, "two"),
	}
	find := func(term string) string {
		b, err := Find(term, func(name string) string { return env[name] })
		if err != nil {
			return "error: " + err.Error()
		}
		return string(b)
	}
	// The first one counts, and those before come later.
	for _, place := range []string{
		"two/71/qt-none", "two/q/qt-none", "one/q/qt-none", "home/.terminfo/q/qt-none", "own/q/qt-none",
	} {
		write(place, place)
		if got := find("qt-none"); got != place {
			t.Errorf("found %q, want %q", got, place)
		}
	}
	write("own/q/qt-large", strings.Repeat("x", MaxSize+1))
	if err := os.MkdirAll(filepath.Join(dir, "own/q/qt-dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, term := range []string{"qt-large", "qt-dir", "../own/q/qt-none", "q/../qt-none", ".", "", "qt\x00"} {
		if got := find(term); !strings.HasPrefix(got, "error: ") {
			t.Errorf("%q: found %.20q", term, got)
		}
	}
	if _, err := Find("qt-nowhere", func(string) string { return "" }); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a terminal that nobody knows: %v", err)
	}
}
