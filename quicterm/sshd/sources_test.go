//go:build linux || darwin

package sshd

import (
	"slices"
	"testing"
)

func TestSplitArgs(t *testing.T) {
	for command, want := range map[string][]string{
		"/bin/a":                {"/bin/a"},
		" /bin/a  %u\t%k ":      {"/bin/a", "%u", "%k"},
		`/bin/a "b  c" 'd"' ""`: {"/bin/a", "b  c", `d"`, ""},
		`/bin/a b\ c\"`:         {"/bin/a", `b c"`},
		`/bin/a "b`:             nil,
		" ":                     nil,
	} {
		if got, err := SplitArgs(command); !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q: %q, %v; want %q", command, got, err, want)
		}
	}
}
