//go:build linux || darwin

package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Each defect can be put in.
func TestDefects(t *testing.T) {
	if runtime.GOARCH == "wasm" {
		t.Skip("the product's files are not there")
	}
	for _, d := range defects {
		b, err := os.ReadFile(filepath.Join("../..", d.file))
		if err != nil {
			t.Error(err)
		} else if n := strings.Count(string(b), d.was); n != 1 {
			t.Errorf("%s: %s has the text %q %d times, want once", d.name, d.file, d.was, n)
		}
	}
}
