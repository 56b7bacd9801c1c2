//go:build linux || darwin

package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The cache has the last builds alone.
func TestCacheDir(t *testing.T) {
	root := t.TempDir()
	var dirs []string
	for i := range 2 * keptBuilds {
		dir, err := cacheDir(root, []byte{byte(i)})
		if err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
		used := time.Now().Add(time.Duration(i-100) * time.Hour)
		if err := os.Chtimes(dir, used, used); err != nil {
			t.Fatal(err)
		}
	}
	if again, err := cacheDir(root, []byte{keptBuilds}); err != nil || again != dirs[keptBuilds] {
		t.Errorf("the directory of a build that is kept is %s, %v; want %s", again, err, dirs[keptBuilds])
	}
	if found, err := filepath.Glob(filepath.Join(root, "*")); err != nil || len(found) != keptBuilds {
		t.Errorf("%d directories are left, %v; want %d", len(found), err, keptBuilds)
	}
}
