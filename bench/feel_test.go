//go:build linux

package main

import (
	"bytes"
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	var sorted []time.Duration
	for n := range 200 {
		sorted = append(sorted, time.Duration(n+1))
	}
	for share, want := range map[float64]time.Duration{0: 1, 0.5: 100, 0.9: 180, 0.99: 198, 0.995: 199, 1: 200} {
		if got := percentile(sorted, share); got != want {
			t.Errorf("percentile %v of 1 to 200 is %d, want %d", share, got, want)
		}
	}
}

// stopFlood ends a flood after so many bytes.
type stopFlood struct {
	bytes.Buffer
	limit int
}

func (s *stopFlood) Write(b []byte) (int, error) {
	if s.Len() >= s.limit {
		return 0, bytes.ErrTooLarge
	}
	return s.Buffer.Write(b)
}

func TestFloodLines(t *testing.T) {
	var out stopFlood
	out.limit = 400_000
	flood(&out, 0)
	lines := bytes.SplitAfter(bytes.ReplaceAll(out.Bytes(), []byte("\n"), []byte("\r\n")), []byte("\n"))
	whole := len(lines) - 1
	shown := func(parts ...[][]byte) error {
		l := new(floodLines)
		l.Write([]byte("flood\r\n"))
		for _, p := range parts {
			l.Write(bytes.Join(p, nil))
		}
		l.Write([]byte("^C\r\n$ "))
		return l.check()
	}
	if err := shown(lines[:whole]); err != nil {
		t.Error("all:", err)
	}
	if err := shown(lines[:whole-10], [][]byte{lines[whole-10][:30], []byte("^C")}, lines[whole-3:whole]); err != nil {
		t.Error("the kernel's part missing at the end:", err)
	}
	if err := shown(lines[1:whole]); err == nil {
		t.Error("the first line may be missing")
	}
	if err := shown(lines[:100], lines[101:whole]); err == nil {
		t.Error("a line may be missing")
	}
	if err := shown(lines[:whole], lines[whole-1:whole]); err == nil {
		t.Error("a line may come twice")
	}
}
