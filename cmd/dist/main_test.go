package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Files of a clone have the time of the commit, whenever it was made: packages keep the times of their scripts.
func TestDate(t *testing.T) {
	dir, to := t.TempDir(), time.Unix(1700000000, 0)
	for _, file := range []string{"go.mod", "configs/package/apk/post-install", ".git/index"} {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(file), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := date(dir, to); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]bool{"go.mod": true, "configs/package/apk/post-install": true, ".git/index": false} {
		if info, err := os.Stat(filepath.Join(dir, file)); err != nil || info.ModTime().Equal(to) != want {
			t.Errorf("%s is of %v, %v", file, info.ModTime(), err)
		}
	}
}
