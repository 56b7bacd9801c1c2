package vt

import (
	"flag"
	"strings"

	"pgregory.net/rapid"
)

// Random cases are the same in each run, so that a test that passes does so again. -rapid.seed=0 tries others.
func init() { flag.Set("rapid.seed", "1") }

// output generates output of programs with many beginnings, ends and breaks of
// sequences.
func output() *rapid.Generator[string] {
	parts := []string{
		"\x1b", "[", "]", "P", "_", "\\", "\a", "\x18", "\x1a", "\x05", "\x7f", "\n",
		"0", "6", ";", "?", ">", "$", " ", "(", "B", "c", "h", "m", "n", "q", "t", "u", "p", "Z", "G",
		"\x1b[", "\x1b]", "\x1bP", "\x1b\\", "\x1b[6n", "\x1b[?1049h", "\x1b]11;?\a", "\x1b]0;t\a", "a=q",
		"text", "é", "€", "\x80", "\x9b", "\xff", "\u009b", "\u009d", "\x9c", "\xc2", "\xe0", "00", "5522", "_Gi=1,",
	}
	return rapid.Map(rapid.SliceOf(rapid.SampledFrom(parts)), func(s []string) string { return strings.Join(s, "") })
}

// long generates output with sequences whose length is near the limit.
func long() *rapid.Generator[string] {
	run := rapid.Custom(func(t *rapid.T) string {
		b := rapid.SampledFrom([]string{"t", "1", " ", "\n", "\x05", "\xff"}).Draw(t, "of")
		return strings.Repeat(b, maxString+rapid.IntRange(-8, 8).Draw(t, "more"))
	})
	return rapid.Custom(func(t *rapid.T) string {
		return output().Draw(t, "before") + run.Draw(t, "run") + output().Draw(t, "after")
	})
}

// cut cuts a string into chunks of the given sizes less 1, repeated.
func cut(s string, sizes []byte) []string {
	var chunks []string
	for i := 0; s != ""; i++ {
		n := len(s)
		if len(sizes) > 0 {
			n = min(n, 1+int(sizes[i%len(sizes)]))
		}
		chunks = append(chunks, s[:n])
		s = s[n:]
	}
	return chunks
}

// bytewise cuts a string at each byte, inside characters too.
func bytewise(s string) []string {
	chunks := make([]string, len(s))
	for i := range len(s) {
		chunks[i] = s[i : i+1]
	}
	return chunks
}

// osc returns an OSC of n bytes with the given end.
func osc(n int, end string) string {
	const begin = "\x1b]0;"
	return begin + strings.Repeat("t", n-len(begin)-len(end)) + end
}
