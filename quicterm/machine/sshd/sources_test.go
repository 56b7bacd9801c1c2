//go:build linux || darwin

package sshd

import (
	"slices"
	"strings"
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

// Tokens are replaced in all arguments but the first, once, and unknown ones are named.
func TestProgramArgs(t *testing.T) {
	tokens := map[byte]string{'u': "jo", 'h': "%u"}
	for command, want := range map[string]string{
		"/bin/%u x%u %h %%u": "/bin/%u xjo %u %u",
		"/bin/a %C":          "%C is not a token that is known here",
		"/bin/a 50%":         "% at the end is not a token: %% is a percent sign",
	} {
		args, err := ProgramArgs(command, tokens)
		got := strings.Join(args, " ")
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", command, got, want)
		}
	}
}
