package vt

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// queries are the sequences that some terminal answers.
var queries = []string{
	"\x05",              // ENQ
	"\x1bZ",             // DECID
	"\x1b[c", "\x1b[0c", // DA1
	"\x1b[>c", "\x1b[>0c", // DA2
	"\x1b[=c",            // DA3
	"\x1b[5n", "\x1b[6n", // DSR
	"\x1b[?6n", "\x1b[?996n", // of DEC, and for the colour scheme
	"\x1b[4$p", "\x1b[?2026$p", // DECRQM
	"\x1b[>q", "\x1b[>0q", // XTVERSION
	"\x1b[?u",              // kitty keyboard flags
	"\x1b[?4m", "\x1b[?1g", // XTQMODKEYS, XTQFMTKEYS
	"\x1b[x", "\x1b[0x", "\x1b[1x", // DECREQTPARM
	"\x1b[?1;1;0S", "\x1b[#S", // XTSMGRAPHICS, XTTITLEPOS
	"\x1b[1$w", "\x1b[2$w", // DECRQPSR
	"\x1b[1;1;1;1;24;80*y", // DECRQCRA
	"\x1b[&u", "\x1b[1$u",  // DECRQUPSS, DECRQTSR
	"\x1b[\"v",                  // DECRQDE
	"\x1b['|", "\x1b[1;1;2;2#|", // DECRQLP, XTREPORTSGR
	"\x1b[#R", // XTREPORTCOLORS
	"\x1b[11t", "\x1b[13t", "\x1b[13;2t", "\x1b[14t", "\x1b[14;2t", "\x1b[15t",
	"\x1b[16t", "\x1b[18t", "\x1b[19t", "\x1b[20t", "\x1b[21t", // XTWINOPS

	"\x1b]4;1;?\a", "\x1b]4;1;?;2;?\x1b\\", "\x1b]4;1;red;2;?\a", "\x1b]4;1;?;2;red\a",
	"\x1b]10;?\x1b\\", "\x1b]11;?\a", "\x1b]10;?;?\a", "\x1b]12;?\a", // colours
	"\x1b]50;?\a", "\x1b]50;?1\a", // fonts
	"\x1b]52;c;?\a", "\x1b]52;;?\x1b\\", // clipboard
	"\x1b]21;foreground=?;background=?\x1b\\", // kitty colours
	"\x1b]22;?__current__\x1b\\",              // pointer
	"\x1b]99;i=1:p=?;\x1b\\",                  // kitty notifications
	"\x1b]60\a", "\x1b]61\x1b\\",              // XTQALLOWED, XTQDISALLOWED
	"\x1b]1337;ReportCellSize\a", "\x1b]1337;ReportVariable=aA==\x1b\\", "\x1b]1337;Capabilities\a",

	"\x1bP$qm\x1b\\", "\x1bP$q q\x1b\\", // DECRQSS
	"\x1bP+q544e\x1b\\",                                              // XTGETTCAP
	"\x1bP+Q4e\x1b\\",                                                // XTGETXRES
	"\x1bP@kitty-cmd{\"cmd\":\"ls\"}\x1b\\",                          // kitty's remote control
	"\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\", "\x1b_Ga=q;\x1b\\", // kitty graphics
}

// oddQueries are queries in unusual forms, which terminals answer all the same.
var oddQueries = []string{
	"\x1b[000c", "\x1b[>00c", "\x1b[06n", "\x1b[005n", "\x1b[?0006n", "\x1b[00x", "\x1b[01x", "\x1b[1;1x", "\x1b[0;0x", // leading zeros
	"\x1b[0011t", "\x1b[018;0t", "\x1b[014:0t", "\x1b[0\"v", "\x1b[01$u", "\x1b[000;1$w",
	"\x1b]0011;?\a", "\x1b]04;1;?\x1b\\", "\x1b]052;c;?\a", "\x1b]060\a", "\x1b]01337;ReportCellSize\a",
	"\x1b[6\nn", "\x1b\n[6n", "\x1b\x7f[6n", "\x1b[\r\n>c", "\x1b\tZ", "\x1b]11;\n?\a", "\x1b]1\x001;?\a", // control characters within
	"\x1bP0$qm\x1b\\", "\x1bP1;2+q544e\x1b\\", "\x1bP\n$qm\x1b\\", // parameters
	"\u009b6n", "\u009b>c", "\u009a", "\u009d11;?\a", "\u009d11;?\u009c", "\u0090$qm\u009c", "\u009fGa=q;\u009c", // C1 in UTF-8
	"\x1b]11;?\u009c", "\x1bP$qm\x1b\\",
	"\x1b]5522;type=read;Lg==\x1b\\", "\x1b]5522;type=write\x1b\\", "\x1b]5113;ac=send;id=1\x1b\\", // kitty's clipboard and files
	"\x1b]99;i=1:p=alive;\x1b\\", "\x1b]1337;RequestUpload=format=tgz\a",
	"\x1b[" + strings.Repeat("0", 2*maxString) + "c", "\x1b[6" + strings.Repeat("\x00", maxString) + "n", // longer than is kept
	"\x1b]11;?" + strings.Repeat(" ", 2*maxString) + "\a", "\x1b]4;" + strings.Repeat("1;red;", maxString) + "2;?\x1b\\",
	"\x1bP$q" + strings.Repeat("m", maxString) + "\x1b\\", "\x1bP+q" + strings.Repeat("544e;", maxString) + "\x1b\\",
	"\x1b_Ga=q,i=1,f=24;" + strings.Repeat("AAAA", maxString) + "\x1b\\", "\x1b_G" + strings.Repeat("i=1,", maxString) + "a=q;\x1b\\",
	"\x1b]5522;type=read;" + strings.Repeat("A", maxString) + "\x1b\\", "\x1b]52;" + strings.Repeat("c", maxString) + ";?\a",
	"\x1b]" + strings.Repeat("0", maxString) + "52;c;?\a",
}

// noQueries is output that no terminal answers.
var noQueries = []string{
	"text\r\n", "é€😀", "\a\b\t\x0e\x0f",
	"\x1b[m", "\x1b[1;38;5;4m", "\x1b[4:3m", "\x1b[>4;2m", "\x1b[>4m", "\x1b[>4n", "\x1b[>m",
	"\x1b[H", "\x1b[6;1H", "\x1b[5A", "\x1b[6B", "\x1b[2J", "\x1b[K", "\x1b[1;24r", "\x1b[3S", "\x1b[6X", "\x1b[3g",
	"\x1b[?25h", "\x1b[?25l", "\x1b[?1049h", "\x1b[?2026h", "\x1b[4l", "\x1b[!p", "\x1b[62;1\"p",
	"\x1b[2 q", "\x1b[0\"q", "\x1b[s", "\x1b[u", "\x1b[>1u", "\x1b[<1u", "\x1b[=5u", "\x1b[=5;1u",
	"\x1b[8;24;80t", "\x1b[1t", "\x1b[22;0;0t", "\x1b[23;2t", "\x1b[>2t", "\x1b[11;1;12;9;7$t",
	"\x1b[2*x", "\x1b[65;1;1;2;2$x", "\x1b[1;1;2;2$v", "\x1b[1;1;2;2'w", "\x1b[80$|", "\x1b[#P", "\x1b[#Q",
	"\x1b7", "\x1b8", "\x1bM", "\x1b=", "\x1b>", "\x1bc", "\x1b(0", "\x1b(B", "\x1b(Z", "\x1b#8", "\x1b%G",
	"\x1b]0;title\a", "\x1b]2;what;?\a", "\x1b]0;really;?;no\x1b\\", "\x1b]1;?\a",
	"\x1b]8;;https://a.example/?q=1\x1b\\", "\x1b]8;id=1;https://a.example/?a;?;b\a", "\x1b]8;;\x1b\\",
	"\x1b]52;c;aGk=\a", "\x1b]4;1;#ff0000\a", "\x1b]11;#000000\x1b\\", "\x1b]104\a", "\x1b]112\a",
	"\x1b]7;file://host/home\x1b\\", "\x1b]9;done;?\a", "\x1b]777;notify;what;?\a", "\x1b]133;A\a",
	"\x1b]21;foreground=red\x1b\\", "\x1b]22;pointer\x1b\\", "\x1b]99;i=1:d=0;Hello?\x1b\\",
	"\x1b]1337;SetMark\a", "\x1b]1337;File=inline=1:AAAA\a",
	"\x1bPq#0;2;0;0;0~-\x1b\\", "\x1bP1$r0m\x1b\\", "\x1bPtmux;\x1b\\", "\x1bPzz\x1b\\",
	"\x1b_Ga=T,f=24,s=1,v=1;AAAA\x1b\\", "\x1b_other a=q\x1b\\", "\x1b^a=q\x1b\\", "\x1bXa=q\x1b\\",
	"\x1b]52;c;" + strings.Repeat("aGk=", 2*maxString) + "\a",
	"\x1bPq" + strings.Repeat("~", maxString) + "\x1b\\", "\x1b]2;" + strings.Repeat("what;?", maxString) + "\a",
	"\x1b_Ga=T,f=24;" + strings.Repeat("AAAA", maxString) + "\x1b\\", "\x1b]1337;File=inline=1:" + strings.Repeat("AAAA", maxString) + "\a",
	"\x1b]8;;https://a.example/?" + strings.Repeat("a;?", maxString) + "\a", "\x1b]66;s=2;?text;?\a", "\x1b]133;A;?\a",
	"Лес, ÿ, 龜, \U0001f6db, \u00a0", "\x1b]2;Лес\a", "\x1b_Ga=T,i=1,q=2;AAAA\x1b\\", "\x1b_Gm=0;AAAA\x1b\\",
	"\x1b[6", "\x1b]11;", // cut off by the next sequence
}

// strip strips chunks, and returns the bytes held back at the end too.
func strip(chunks ...string) string {
	var s Stripper
	var out []byte
	for _, chunk := range chunks {
		out = append(out, s.Strip([]byte(chunk))...)
	}
	return string(append(out, s.Rest()...))
}

func TestStripQueries(t *testing.T) {
	for _, query := range slices.Concat(queries, oddQueries) {
		for n := range min(len(query), 100) {
			if got := strip("a"+query[:n], query[n:]+"b"); text(got) != "ab" {
				t.Errorf("%.80q | %.80q leaves %.80q", query[:n], query[n:], got)
			}
		}
		if got := strip(bytewise("a" + query + query + "b")...); text(got) != "ab" {
			t.Errorf("twice %q, byte by byte, leaves %q", query, got)
		}
	}
}

// text returns output without the control characters within a query, which the terminal obeys at once.
func text(output string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("\x00\t\r\n", r) {
			return -1
		}
		return r
	}, output)
}

func TestStripLeavesTheRest(t *testing.T) {
	for _, s := range noQueries {
		for _, chunks := range [][]string{{s}, bytewise(s)} {
			if got, want := events(t, strip(chunks...), true), events(t, s, false); !slices.Equal(got, want) {
				t.Errorf("%.80q, in %d chunks, becomes %.80q", s, len(chunks), got)
			}
		}
	}
	all := strings.Join(noQueries, "\x1b[m")
	got := strip(strings.Join(queries, "") + all)
	if !slices.Equal(events(t, got, true), events(t, all, false)) {
		t.Errorf("all of it becomes %q", got)
	}
}

// A stripped handler records what a terminal is to get of the output that a Parser finds.
type stripped struct {
	recorder
	t        rapid.TB
	checking bool // queries are errors
	drop     bool
	text     string // of the string
}

// events returns what a terminal is to get of output. If that was stripped, there are to be no queries.
func events(t rapid.TB, output string, checking bool) []string {
	t.Helper()
	e := &stripped{t: t, checking: checking}
	var p Parser
	p.Parse([]byte(output), e)
	raw, _ := p.Continuation()
	return append(e.recorder, "then "+string(raw))
}

func (s *stripped) query(what any) {
	if s.t.Helper(); s.checking {
		s.t.Errorf("%v is left", what)
	}
}

func (s *stripped) Execute(c byte) {
	switch {
	case c == 0: // does nothing
	case c == enq:
		s.query("ENQ")
	case c >= 0x80:
		if s.Escape(0, c-0x40); s.checking {
			s.t.Errorf("the C1 character %x is left", c)
		}
	default:
		s.recorder.Execute(c)
	}
}

func (s *stripped) Escape(intermediates uint16, final byte) {
	switch {
	case intermediates == 0 && final == 'Z':
		s.query("DECID")
	case intermediates != tooMany && (intermediates != 0 || final != '\\'):
		s.recorder.Escape(intermediates, final)
	}
}

func (s *stripped) Control(c *Control) {
	switch {
	case c.Intermediates == tooMany:
	case isControlQuery(c):
		s.query(*c)
	default:
		s.recorder.Control(c)
	}
}

func (s *stripped) String(kind byte, data []byte, part Part) {
	body := string(data)
	if part&First != 0 {
		s.text = ""
		s.drop = isStringQuery(kind, body, part&Last != 0)
		body = silenceImage(kind, body)
	}
	if s.drop && part&Last != 0 {
		s.query(body)
	}
	s.text += body
	if part&(Last|Cancelled) == 0 || s.drop || part == First|Cancelled {
		return
	}
	s.recorder.String(kind, []byte(s.text), part|First)
}

// The bytes around a removed query form no query, and no unfinished string.
func TestStripJoinsNothing(t *testing.T) {
	tests := []struct{ why, input, want string }{
		{"ESC before a query", "\x1b\x1b[6n[6n", "[6n"},
		{"CSI before a query", "\x1b[\x1b[c6n", "6n"},
		{"OSC before a query", "\x1b]0;t\x1b[6ntext", "\x1b]0;t\x1b\\text"},
		{"OSC before two queries", "\x1b]0;t\x1b[6n\x1b[ctext", "\x1b]0;t\x1b\\text"},
		{"an OSC that is too long", osc(maxString+9, "") + "\x1b[6nx", osc(maxString+9, "") + "\x1b\\x"},
		{"an OSC before a query that is too long", "\x1b]0;t\x1b]11;?" + strings.Repeat(" ", maxString) + "\atext", "\x1b]0;t\x1b\\text"},
		{"ENQ within a sequence", "\x1b[3\x051m\x1b]0;\x05t\a", "\x1b[31m\x1b]0;t\x1b\\"},
		{"single bytes of C1", "a\x9b6nb\x90c\x84", "a6nbc"},
		{"bytes of C1 in what is not UTF-8", "\xe0\x9b6n\xf0\x80\x9b5n\xc1\x9bc\xc2a\xc2", "\xe0\x006n\xf0\x005n\xc1\x00c\xc2\x00a\xc2"},
		{"a byte of C1 behind text and a character that is cut off", "\xe2x\x9b6n", "\xe2\x00x6n"},
		{"C1 in UTF-8 that asks nothing", "\u009b31mred\u009d0;t\u009ctext", "\x1b[31mred\x1b]0;t\x1b\\text"},
		{"an image with an id", "\x1b_Ga=T,i=1,q=1,f=100;AAAA\x1b\\", "\x1b_Gq=2,a=T,i=1,f=100;AAAA\x1b\\"},
		{"an image with a number", "\x1b_Ga=p,I=7\x1b\\", "\x1b_Gq=2,a=p,I=7\x1b\\"},
		{"a large image with an id", "\x1b_Gi=1;" + strings.Repeat("AAAA", maxString) + "\x1b\\", "\x1b_Gq=2,i=1;" + strings.Repeat("AAAA", maxString) + "\x1b\\"},
		{"an OSC that ends at the limit", osc(maxString, "") + "\x1b[6nx", osc(maxString, "") + "\x1b\\x"},
		{"a query that is cut off", "\x1b]11;?\x1b[mx", "\x1b[mx"},
		{"a query that is cancelled", "\x1b[6\x18n", "\x18n"},
		{"an image that is cancelled", "\x1b_Ga=p,i=1\x18text\x1b_Ga=p,i=1\x1atext", "texttext"},
	}
	for _, test := range tests {
		for _, chunks := range [][]string{{test.input}, bytewise(test.input)} {
			if got := strip(chunks...); got != test.want {
				t.Errorf("%s, in %d chunks: %.80q, want %.80q", test.why, len(chunks), got, test.want)
			}
		}
	}
}

// What follows an unfinished sequence is written such that the terminal, which has its beginning, obeys it once.
func TestStripAfter(t *testing.T) {
	long := "\x1b_Ga=T;" + strings.Repeat("A", 2*maxString)
	for _, test := range []struct{ begun, output, want string }{
		{"\x1b[3", "1mx", "\x18\x1b[31mx"},
		{"\x1b[", "6nx", "\x18x"},
		{"\x1b]0;ti", "tle\ax", "\x18\x1b]0;title\x1b\\x"},
		{"\x1b]11;", "?\ax", "\x18x"},
		{"\x1b[3", "", "\x18\x1b[3"},
		{"\xe2\x82", "\xacx", "\xacx"},
		{"\xe2\x82", "x", "x"},
		{long, "BB\x1b\\x", "BB\x1b\\x"},
	} {
		var p Parser
		p.Parse([]byte(test.begun), ignored{})
		begun, _ := p.Continuation()
		s := StripAfter(begun)
		got := string(s.Strip([]byte(test.output)))
		if got += string(s.Rest()); got != test.want {
			t.Errorf("%.20q and then %q: %q, want %q", test.begun, test.output, got, test.want)
		}
	}
}

// A sequence that begins in the replay continues in the live output.
func TestStripRest(t *testing.T) {
	var s Stripper
	if out := string(s.Strip([]byte("a\x1b[3"))); out != "a" {
		t.Errorf("%q before the sequence is complete", out)
	}
	if rest := string(s.Rest()); rest != "\x1b[3" {
		t.Errorf("Rest() = %q", rest)
	}
	if out := string(s.Strip([]byte("1m\x1b[6n"))); out != "1m" {
		t.Errorf("after Rest: %q", out)
	}
	s = Stripper{}
	s.Strip([]byte("\x1b]5522;type=read;" + strings.Repeat("A", 2*maxString)))
	if rest := string(s.Rest()); !strings.HasPrefix(rest, "\x1b]5522;type=read;AAAA") {
		t.Errorf("the rest of a long query is %q", rest)
	}
}

func TestStripAnyOutput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		input := rapid.OneOf(output(), long()).Draw(t, "input")
		checkStrip(t, input, rapid.SliceOf(rapid.Byte()).Draw(t, "sizes"))
	})
}

func FuzzStrip(f *testing.F) {
	for _, s := range slices.Concat(queries, oddQueries, noQueries) {
		f.Add("a"+s+"b", []byte{0, 1, 7})
	}
	f.Add("\x1b\x1b[6n[6n", []byte{})
	f.Add("\x9b6n \xc2\x9b6n \xe0\x9b\xc2", []byte{0})
	f.Fuzz(func(t *testing.T, input string, sizes []byte) { checkStrip(t, input, sizes) })
}

// checkStrip checks that no query is left, that nothing else is removed, and that the
// result does not depend on the chunks.
func checkStrip(t rapid.TB, input string, sizes []byte) {
	t.Helper()
	got := strip(cut(input, sizes)...)
	if whole := strip(input); got != whole {
		t.Errorf("in chunks: %q\nat once: %q", got, whole)
	}
	if got, want := events(t, got, true), events(t, input, false); !slices.Equal(got, want) {
		t.Errorf("%q became\n%q, want\n%q", input, got, want)
	}
	if plainText([]byte(input)) && got != input {
		t.Errorf("%q became %q", input, got)
	}
}
