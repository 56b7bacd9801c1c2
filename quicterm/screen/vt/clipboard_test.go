package vt

import (
	"slices"
	"strings"
	"testing"
)

// clipboardReads ask a terminal for the clipboard, at least one of some kind.
var clipboardReads = []string{
	"\x1b]52;c;?\a", "\x1b]52;;?\x1b\\", "\x1b]52;p;?\a", "\x1b]52;cs0;?\x1b\\", "\x1b]52;c;?\u009c", "\u009d52;c;?\u009c",
	"\x1b]0052;c;?\a", "\x1b]5\x002;\nc;\r?\a", "\x1b]5\x7f2;c;\x7f?\a", "\x1b]\xff52\xff;\xffc;\xff?\a", "\x1b]52;c;\ufeff?\a",
	"\x1b]52;c;?aGk=\a", "\x1b]52;c;?\x18", "\x1b]52;" + strings.Repeat("c", 5000) + ";?\a", "\x1b]52;c;?" + strings.Repeat(" ", 5000) + "\a",
	"\x1b]" + strings.Repeat("0", 5000) + "52;c;?\a",
}

// filtered returns what passes a filter, also in the end.
func filtered(chunks ...string) string {
	live, rest := filteredLive(chunks...)
	return live + rest
}

// filteredLive is filtered, with the rest apart, which is not live: only a Stripper gets it.
func filteredLive(chunks ...string) (live, rest string) {
	var f ClipboardFilter
	for _, chunk := range chunks {
		live += string(f.Filter([]byte(chunk)))
	}
	return live, string(f.Rest())
}

// A question leaves nothing, wherever the output is cut.
func TestClipboardReads(t *testing.T) {
	for _, read := range clipboardReads {
		for n := range min(len(read), 100) {
			if got := filtered("a"+read[:n], read[n:]+"b"); got != "ab" {
				t.Errorf("%.80q | %.80q leaves %.80q", read[:n], read[n:], got)
			}
		}
		if got := filtered(bytewise("é" + read + read + "b")...); got != "éb" {
			t.Errorf("twice %.80q, byte by byte, leaves %.80q", read, got)
		}
	}
}

func TestClipboardFilter(t *testing.T) {
	tests := []struct{ why, input, want string }{
		{"within what a multiplexer passes on", "\x1bPtmux;\x1b\x1b]52;c;?\a\x1b\\", "\x1bPtmux;\x1b\x1b\\"},
		{"behind an ESC that the terminal has", "\x1b\r]52;c;?\ax", "\x1b\r\x18x"},
		{"of 8 bits, behind an ESC", "\x1b\x9d52;c;?\ax", "\x1b\x18x"},
		{"in front of another sequence", "\x1b]52;c;?\x1b[31mx", "\x1b[31mx"},
		{"twice, the first without an end", "\x1b]52;c;?\x1b]52;c;?\ax", "x"},
		{"C1 within", "\x1b]5\u009d52;c;?\ax", "52;c;?\ax"},
		{"an ST that only some terminals know", "\x1b]52;c\x9c;?\ax", ";?\ax"},
		{"a beginning in another string", "\x1b]0;title\x1b]52;c;?\ax", "\x1b]0;titlex"},
		{"one within a character", "”52;c;?\a", "”52;c;?\a"},
	}
	for _, unchanged := range append(slices.Clone(noQueries), queries[0], "\x1b]52;c;\a", "\x1b]52;c\a", "\x1b]52;?\a", "\x1b]520;c;?\a", "\x1b]5\a2;c;?",
		"\x1b]2;52;c;?\a", "\x1b]4;1;?\a", "\x1b]52;c;?"[:7]+"\x18?", "\x1b]52;c;a?\a", "\x1b[52;c;?", "52;c;?\a", "é”\u009b31m\xc2", "\x1b", "\x1b\n\x1b") {
		tests = append(tests, struct{ why, input, want string }{"no question", unchanged, unchanged})
	}
	for _, test := range tests {
		for _, chunks := range [][]string{{test.input}, bytewise(test.input)} {
			if got := filtered(chunks...); got != test.want {
				t.Errorf("%s, in %d chunks: %.80q, want %.80q", test.why, len(chunks), got, test.want)
			}
		}
	}
	// What is no longer live is for a Stripper, which gets what was held back, also the beginning of a question.
	for _, read := range clipboardReads {
		for n := range min(len(read), 100) {
			var f ClipboardFilter
			got := string(f.Filter([]byte(read[:n])))
			var p Parser
			p.Parse([]byte(got), ignored{})
			begun, _ := p.Continuation()
			s := StripAfter(begun)
			got += string(s.Strip(f.Rest()))
			got += string(s.Strip([]byte(read[n:])))
			checkReadsNothing(t, read, got+string(f.Filter(s.Rest())))
		}
	}
}

// A reader finds questions for the clipboard in what a Parser finds.
type reader struct {
	ignored
	text  []byte
	reads bool
}

func (r *reader) String(kind byte, data []byte, part Part) {
	if part&First != 0 {
		r.text = nil
	}
	r.text = append(r.text, data...)
	number, values, _ := strings.Cut(strings.ReplaceAll(string(r.text), "\x7f", ""), ";")
	_, text, _ := strings.Cut(values, ";")
	r.reads = r.reads || kind == ']' && strings.TrimLeft(number, "0") == "52" && strings.HasPrefix(text, "?")
}

// checkReadsNothing checks that output asks for the clipboard nowhere.
func checkReadsNothing(t testing.TB, input, output string) {
	t.Helper()
	r := new(reader)
	new(Parser).Parse([]byte(output+"\x1b\\"), r)
	if r.reads {
		t.Errorf("%.200q leaves %.200q, which asks", input, output)
	}
}

func FuzzClipboardFilter(f *testing.F) {
	for _, s := range slices.Concat(clipboardReads, noQueries) {
		f.Add("a"+s+"b", []byte{0, 1, 7})
	}
	f.Add("a\x1b]52;;? \\b", []byte{0}) // it has not ended
	f.Fuzz(func(t *testing.T, input string, sizes []byte) {
		got := filtered(cut(input, sizes)...)
		if whole := filtered(input); got != whole {
			t.Errorf("in chunks: %q\nat once: %q", got, whole)
		}
		live, _ := filteredLive(input)
		checkReadsNothing(t, input, live)
		digits := strings.Map(func(r rune) rune {
			if r < ' ' || r >= del {
				return -1
			}
			return r
		}, input)
		if !strings.Contains(digits, "52;") && len(input) < maxSelections && !strings.ContainsAny(input, "\x1b\u009d") && got != input {
			t.Errorf("%q became %q", input, got)
		}
	})
}

// BenchmarkClipboardFilter is the cost of live output.
func BenchmarkClipboardFilter(b *testing.B) {
	line := "-rw-r--r-- 1 root root 1234 Nov 22 15:00 some-file-name.go and more text\r\n"
	for name, line := range map[string]string{"text": line, "colour": "\x1b[01;34mdirectory\x1b[0m  " + line} {
		b.Run(name, func(b *testing.B) {
			var f ClipboardFilter
			chunk := []byte(strings.Repeat(line, 60_000/len(line)))
			b.SetBytes(int64(len(chunk)))
			for b.Loop() {
				f.Filter(chunk)
			}
		})
	}
}
