package vt

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A recorder writes down what a Parser finds.
type recorder []string

func (r *recorder) Print(text []byte) {
	if n := len(*r); n > 0 && strings.HasPrefix((*r)[n-1], "print ") {
		(*r)[n-1] += string(text)
		return
	}
	*r = append(*r, "print "+string(text))
}

func (r *recorder) Rune(c rune)    { *r = append(*r, fmt.Sprintf("rune %c", c)) }
func (r *recorder) Broken([]byte)  {}
func (r *recorder) Execute(c byte) { *r = append(*r, fmt.Sprintf("execute %#x", c)) }

func (r *recorder) Escape(intermediates uint16, final byte) {
	*r = append(*r, fmt.Sprintf("escape %s%c", bytesOf(intermediates), final))
}

func (r *recorder) Control(c *Control) {
	var b strings.Builder
	for i := range c.Len() {
		switch {
		case c.Sub(i):
			b.WriteByte(':')
		case i > 0:
			b.WriteByte(';')
		}
		fmt.Fprint(&b, c.Value(i))
	}
	prefix := ""
	if c.Prefix != 0 {
		prefix = string(rune(c.Prefix))
	}
	*r = append(*r, fmt.Sprintf("control %s%s%s%c", prefix, &b, bytesOf(c.Intermediates), c.Final))
}

func (r *recorder) String(kind byte, data []byte, part Part) {
	*r = append(*r, fmt.Sprintf("string %c %q %v", kind, data, part == Whole))
}

func bytesOf(intermediates uint16) string {
	return strings.Trim(string([]byte{byte(intermediates >> 8), byte(intermediates)}), "\x00")
}

func record(p *Parser, chunks ...string) recorder {
	var r recorder
	for _, chunk := range chunks {
		p.Parse([]byte(chunk), &r)
	}
	return r
}

func TestParser(t *testing.T) {
	for _, test := range []struct{ output, want string }{
		{"text\r\n", "print text, execute 0xd, execute 0xa"},
		{"é€😀", "rune é, rune €, rune 😀"},
		{"\x7f", ""},
		{"\x1b7\x1b(0\x1b#8\x1b !#G", "escape 7, escape (0, escape #8, escape \xff\xffG"},
		{"\x1b[m\x1b[5A\x1b[;H\x1b[1;2r", "control 0m, control 5A, control 0;0H, control 1;2r"},
		{"\x1b[?25h\x1b[>4;1m\x1b[=5u\x1b[<u", "control ?25h, control >4;1m, control =5u, control <0u"},
		{"\x1b[2 q\x1b[!p\x1b[?1$p\x1b[ !\"p", "control 2 q, control 0!p, control ?1$p, control 0\xff\xffp"},
		{"\x1b[4:3m\x1b[38:2::1:2:3m", "control 4:3m, control 38:2:-1:1:2:3m"},
		{"\x1b[99999999999A", "control 2147483647A"},
		{"\x1b[1?h\x1b[1 2h\x1b[?>hx", "print x"},
		{"\x1b[1\r2A", "execute 0xd, control 12A"},
		{"\x1b[1\x18A\x1b[\x1a", "execute 0x18, print A, execute 0x1a"},
		{"\x1b[3\x1b[4A", "control 4A"},
		{"\x1b[3éA", "print A"},
		{"\x1b]0;title\a", `string ] "0;title" true`},
		{"\x1b]0;ti\x01tle\x1b\\x", `string ] "0;title" true, escape \, print x`},
		{"\x1b]8;;é\u009cx", `string ] "8;;é" true, print x`},
		{"\x1b]0;no\x18x", `string ] "0;no" false, print x`},
		{"\x1b]0;a\x1b[5A", `string ] "0;a" true, control 5A`},
		{"\x1bPq#0\a~\x1b\\", `string P "q#0\a~" true, escape \`},
		{"\x1b_Ga=q\x1b\\\x1b^p\x1b\\\x1bXs\x1b\\", `string _ "Ga=q" true, escape \, string ^ "p" true, escape \, string X "s" true, escape \`},
		{"\u009b5A\u009d0;t\a\u0085\u0090q\u009c", `control 5A, string ] "0;t" true, execute 0x85, string P "q" true`},
		{"a\x80b\xc3(c\xe2\x82d\xed\xa0\x80e\xf8f\ufeffg", "print ab(cdefg"},
	} {
		var p Parser
		if got := strings.Join(record(&p, test.output), ", "); got != test.want {
			t.Errorf("%q:\n got %s\nwant %s", test.output, got, test.want)
		}
		if !p.Ground() {
			t.Errorf("%q does not end at ground", test.output)
		}
	}
}

func TestParserIsBounded(t *testing.T) {
	long := strings.Repeat("x", 10*maxString)
	var p Parser
	got := record(&p, "\x1b]2;"+long)
	if raw, whole := p.Continuation(); whole || len(raw) != maxRaw {
		t.Errorf("%d bytes kept, whole %v", len(raw), whole)
	}
	got = append(got, record(&p, "\a\x1b["+strings.Repeat("1;", 10*maxParameters)+"5m")...)
	last := len(got) - 1
	for _, part := range got[:last] {
		if !strings.HasSuffix(part, "false") || len(part) > maxString+20 {
			t.Errorf("got %.40q", part)
		}
	}
	if n := strings.Count(got[last], ";"); n == 0 || n >= maxParameters {
		t.Errorf("%d parameters", n)
	}
}

func TestParserAnyOutput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		input := rapid.OneOf(output(), long()).Draw(t, "input")
		checkParser(t, input, rapid.SliceOf(rapid.Byte()).Draw(t, "sizes"), rapid.IntRange(0, len(input)).Draw(t, "at"))
	})
}

func FuzzParser(f *testing.F) {
	for _, s := range slices.Concat(queries, oddQueries, noQueries) {
		if len(s) < 200 {
			f.Add(s, []byte{0, 1, 7}, 3)
		}
	}
	f.Fuzz(checkParser[*testing.T])
}

// checkParser checks that chunks make no difference, and that the continuation brings another parser
// to the same state without any effect.
func checkParser[T rapid.TB](t T, input string, sizes []byte, at int) {
	var whole, chunked Parser
	want := record(&whole, input)
	if got := record(&chunked, cut(input, sizes)...); !slices.Equal(got, want) {
		t.Errorf("in chunks: %.200q\nat once: %.200q", got, want)
	}
	rawWhole, _ := whole.Continuation()
	if raw, _ := chunked.Continuation(); string(raw) != string(rawWhole) || chunked.Ground() != whole.Ground() {
		t.Errorf("in chunks %.200q is kept, at once %.200q", raw, rawWhole)
	}

	at = min(max(at, 0), len(input))
	var first, second Parser
	record(&first, input[:at])
	raw, complete := first.Continuation()
	if len(raw) > maxRaw {
		t.Errorf("%d bytes are kept", len(raw))
	}
	if !complete {
		return
	}
	if got := record(&second, string(raw)); len(got) > 0 {
		t.Errorf("the continuation %.200q does %.200q", raw, got)
	}
	if got, want := record(&second, input[at:]), record(&first, input[at:]); !slices.Equal(got, want) {
		t.Errorf("after the continuation %.200q: %.200q, want %.200q", raw, got, want)
	}
}
