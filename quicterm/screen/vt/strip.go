package vt

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// A Stripper removes the queries that a terminal would answer from old output: when that is replayed, the program no
// longer waits for the answer, and a shell would take it for typed input.
//
// It writes what a [Parser] finds, except queries, ENQ, bytes that are C1 control characters to a terminal of
// 8 bits, and malformed sequences. Control sequences come in their form of 7 bits. Images keep their place, and
// are told not to report that they were shown.
type Stripper struct {
	parser Parser
	begun  bool // the terminal has the beginning of the sequence that the parser is in
	known  int  // bytes of the character that the parser is in, which the terminal has
	drop   bool // the string that the parser is in is a query
	out    []byte
}

// StripAfter returns a Stripper for output that follows an unfinished control sequence or character,
// which the terminal has: all of it or the beginning, as [Parser.Continuation] returns it.
func StripAfter(begun []byte) *Stripper {
	s := new(Stripper)
	s.parser.Parse(begun, (*stripHandler)(s))
	s.out = nil
	switch p := &s.parser; {
	case p.phase == inText:
		s.known = p.nchar
	case p.long && !s.drop: // the terminal is to get its further parts
		p.data = p.data[:0]
	default:
		s.begun = true
	}
	return s
}

// Strip returns b without queries. It holds an unfinished sequence back until that
// ends. The result is valid until the next call.
func (s *Stripper) Strip(b []byte) []byte {
	if s.parser.Ground() && plainText(b) {
		return b
	}
	s.out = s.out[:0]
	s.parser.Parse(b, (*stripHandler)(s))
	return s.out
}

// Rest returns the bytes that Strip holds back, and resets the Stripper. Of a long query that is not complete, these are
// the beginning: without that, a terminal would show what follows as text.
func (s *Stripper) Rest() (rest []byte) {
	p := s.parser
	switch held := p.char[:p.nchar]; {
	case p.phase == inText:
		rest = held[min(s.known, len(held)):]
	case p.long && !s.drop:
		rest = append(p.data, held...)
	case s.begun:
		rest = append([]byte{can}, p.raw...)
	default:
		rest = p.raw
	}
	*s = Stripper{}
	return rest
}

// plainText reports whether b has ASCII characters only, and none that Strip looks at.
func plainText(b []byte) bool {
	return !bytes.ContainsFunc(b, func(r rune) bool { return r >= del || r == esc || r == enq })
}

// A stripHandler writes what the Parser of a Stripper finds.
type stripHandler Stripper

// add writes a part of the output. If the terminal has the beginning of a sequence, that is cancelled: the
// sequence is written as a whole, or removed.
func (s *stripHandler) add(parts ...string) {
	if s.begun {
		s.begun = false
		s.out = append(s.out, can)
	}
	for _, part := range parts {
		s.out = append(s.out, part...)
	}
}

func (s *stripHandler) Print(text []byte) {
	s.add()
	s.out = append(s.out, text...)
	s.known = 0
}

func (s *stripHandler) Rune(r rune) {
	s.add(string(r)[min(s.known, utf8.RuneLen(r)):])
	s.known = 0
}

func (s *stripHandler) Broken(b []byte) {
	s.add()
	for _, c := range b[min(s.known, len(b)):] {
		if c >= 0xa0 {
			s.out = append(s.out, c)
		}
		if c >= 0xc0 { // what follows a removed query is not to complete this character
			s.out = append(s.out, 0)
		}
	}
	s.known = 0
}

func (s *stripHandler) Execute(c byte) {
	switch {
	case c >= 0x80:
		s.Escape(0, c-0x40)
	case c != enq: // within a sequence, the terminal obeys it at once, too
		s.out = append(s.out, c)
	}
}

func (s *stripHandler) Escape(intermediates uint16, final byte) {
	s.add()
	if intermediates == tooMany || intermediates == 0 && (final == 'Z' || final == '\\') { // DECID, ST
		return
	}
	s.add("\x1b", marks(0, intermediates), string(rune(final)))
}

func (s *stripHandler) Control(c *Control) {
	s.add()
	if c.Intermediates == tooMany || isControlQuery(c) {
		return
	}
	s.add("\x1b[", marks(c.Prefix, 0))
	for i := range c.Len() {
		switch {
		case c.Sub(i):
			s.add(":")
		case i > 0:
			s.add(";")
		}
		if v := c.Value(i); v > 0 || v == 0 && c.Len() > 1 {
			s.out = strconv.AppendInt(s.out, int64(v), 10)
		}
	}
	s.add(marks(0, c.Intermediates), string(rune(c.Final)))
}

func (s *stripHandler) String(kind byte, data []byte, part Part) {
	s.add()
	first, body := part&First != 0, string(data)
	if first {
		s.drop = isStringQuery(kind, body, part&Last != 0)
		body = "\x1b" + string(rune(kind)) + silenceImage(kind, body)
	}
	switch {
	case s.drop, first && part&Cancelled != 0:
	case part&Cancelled != 0:
		s.add(body, "\x18")
	case part&Last != 0:
		s.add(body, "\x1b\\")
	default:
		s.add(body)
	}
}

// marks returns the private prefix and the intermediate bytes of a sequence.
func marks(prefix byte, intermediates uint16) string {
	var b []byte
	for _, c := range []byte{prefix, byte(intermediates >> 8), byte(intermediates)} {
		if c != 0 {
			b = append(b, c)
		}
	}
	return string(b)
}
