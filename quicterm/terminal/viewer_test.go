package terminal

import "testing"

func TestKeyFilter(t *testing.T) {
	for typed, want := range map[string]string{
		" q\x03":                  " q\x03",
		"\x1b[Aq\x1bOA.":          "q.",
		"\x1b[1;5Cq\x1b[15~.":     "q.",
		"\x1b[M qq.\x1b[<0;1;1M+": ".+",
		"\x1bq.":                  ".",
		"\x1b\x1b[A]":             "]",
	} {
		var f keyFilter
		var got []byte
		for i := range len(typed) {
			if f.isKey(typed[i]) {
				got = append(got, typed[i])
			}
		}
		if string(got) != want {
			t.Errorf("%q has the keys %q, want %q", typed, got, want)
		}
	}
}
