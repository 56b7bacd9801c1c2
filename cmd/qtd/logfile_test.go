//go:build linux || darwin

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// The logs of an account take a bounded size, whatever its holders log, and while two of
// them log at once.
func TestLogFileIsBounded(t *testing.T) {
	base := t.TempDir()
	var logs []*logFile
	for range 2 {
		l, err := openLog(base, "holders.log")
		if err != nil {
			t.Fatal(err)
		}
		logs = append(logs, l)
	}
	line := append(bytes.Repeat([]byte("x"), 999), '\n')
	size := func() (sum int64) {
		files, err := filepath.Glob(filepath.Join(base, "*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			sum += info.Size()
		}
		return sum
	}
	write := func(n int) {
		t.Helper()
		for i := range n {
			if _, err := logs[i%2].Write(line); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 5 {
		write(maxLog / len(line))
		if n := size(); n > 2*(maxLog+2*int64(len(line))) {
			t.Fatalf("the logs take %d bytes, at most two of %d should be kept", n, maxLog)
		}
	}
	last, err := os.ReadFile(logs[0].name)
	if err != nil || len(last) == 0 || len(last)%len(line) != 0 {
		t.Errorf("%d bytes in the newest log, %v; want whole lines", len(last), err)
	}
	// A log that has no name any more does not grow for ever.
	if err := os.RemoveAll(base); err != nil {
		t.Fatal(err)
	}
	write(3 * maxLog / len(line))
	for _, l := range logs {
		if info, err := l.file.Stat(); err != nil || info.Size() > maxLog+int64(len(line)) {
			t.Errorf("a log without a name has %d bytes, %v", info.Size(), err)
		}
	}
}
