//go:build linux

package work

import (
	"bytes"
	"testing"
)

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

func TestCheckFlood(t *testing.T) {
	var out stopFlood
	out.limit = 400_000
	flood(&out, 0)
	lines := bytes.SplitAfter(bytes.ReplaceAll(out.Bytes(), []byte("\n"), []byte("\r\n")), []byte("\n"))
	whole := len(lines) - 1
	shown := func(parts ...[][]byte) error {
		text := "flood\r\n"
		for _, p := range parts {
			text += string(bytes.Join(p, nil))
		}
		return checkFlood(text + "^C\r\n$ ")
	}
	if err := shown(lines[:whole]); err != nil {
		t.Error("all:", err)
	}
	if err := shown(lines[:whole-10], [][]byte{lines[whole-10][:30], []byte("^C")}, lines[whole-3:whole]); err != nil {
		t.Error("the kernel's part missing at the end:", err)
	}
	for what, parts := range map[string][][][]byte{
		"the first line missing": {lines[1:whole]},
		"a line missing":         {lines[:100], lines[101:whole]},
		"a line twice":           {lines[:whole], lines[whole-1 : whole]},
	} {
		if shown(parts...) == nil {
			t.Errorf("%s: no error", what)
		}
	}
}
