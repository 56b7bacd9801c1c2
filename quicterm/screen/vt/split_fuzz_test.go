package vt

import (
	"bytes"
	"flag"
	"regexp"
	"slices"
	"strings"
	"testing"

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
		return strings.Repeat(b, maxSequence+rapid.IntRange(-8, 8).Draw(t, "more"))
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

func TestSplitAnyChunks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		input := rapid.OneOf(output(), long()).Draw(t, "input")
		checkSplit(t, input, rapid.SliceOf(rapid.Byte()).Draw(t, "sizes"))
	})
}

func FuzzSplit(f *testing.F) {
	for _, test := range splits {
		f.Add(test.input, []byte{0, 1, 7})
	}
	f.Fuzz(func(t *testing.T, input string, sizes []byte) { checkSplit(t, input, sizes) })
}

// checkSplit checks that nothing is lost, that memory is bounded, and that the result
// does not depend on the chunks.
func checkSplit(t rapid.TB, input string, sizes []byte) {
	t.Helper()
	var whole splitter
	want := collect(&whole, input)
	var s splitter
	var pieces []piece
	for _, chunk := range cut(input, sizes) {
		pieces = append(pieces, collect(&s, chunk)...)
		if len(s.seq) > maxSequence+1 {
			t.Fatalf("%d bytes held back", len(s.seq))
		}
	}
	if got := merge(pieces); !slices.Equal(got, want) {
		t.Errorf("in chunks: %v\nat once: %v", got, want)
	}
	if s.ground() != whole.ground() || !bytes.Equal(s.seq, whole.seq) {
		t.Errorf("in chunks %q is held back, at once %q", s.seq, whole.seq)
	}
	var all strings.Builder
	for _, p := range pieces {
		if p.sequence && (p.bytes[0] != esc || len(p.bytes) > maxSequence) {
			t.Errorf("not a sequence: %v", p)
		}
		all.WriteString(p.bytes)
	}
	all.Write(s.rest())
	if all.String() != input {
		t.Errorf("%q came out as %q", input, all.String())
	}
}

// grammar matches a control sequence up to its end or to where it is cut off, with a
// character for each byte. In each line except the last, the optional part is the end.
var grammar = regexp.MustCompile(strings.ReplaceAll(`(?s)\x1b[C]*(?:`+strings.Join([]string{
	`\[[C -?]*[@-~\x18\x1a]?`,
	`\][^\x07\x18\x1a\x1b]*(?:[\x07\x18\x1a]|\x1b\\)?`,
	`[PX^_][^\x18\x1a\x1b]*(?:[\x18\x1a]|\x1b\\)?`,
	`[ -/][C -/]*[0-~\x18\x1a]?`,
	`[0-~\x18\x1a]?`,
}, "|")+")", "C", `\x00-\x17\x19\x1c-\x1f\x7f`))

func TestSplitAgainstGrammar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// CAN ends any unfinished sequence; longer sequences have their own test.
		input := output().Draw(t, "input") + "\x18"
		if len(input) > maxSequence {
			t.Skip("too long")
		}
		var s splitter
		if got, want := collect(&s, input), byGrammar(input); !slices.Equal(got, want) {
			t.Errorf("%q splits into\n%v, want\n%v", input, got, want)
		}
	})
}

func byGrammar(input string) []piece {
	runes := make([]rune, len(input))
	for i := range len(input) {
		runes[i] = rune(input[i])
	}
	toBytes := func(s string) string {
		var b []byte
		for _, r := range s {
			b = append(b, byte(r))
		}
		return string(b)
	}
	var pieces []piece
	text, from := string(runes), 0
	for _, at := range grammar.FindAllStringIndex(text, -1) {
		if at[0] > from {
			pieces = append(pieces, plain(toBytes(text[from:at[0]])))
		}
		pieces = append(pieces, sequence(toBytes(text[at[0]:at[1]])))
		from = at[1]
	}
	if from < len(text) {
		pieces = append(pieces, plain(toBytes(text[from:])))
	}
	return pieces
}
