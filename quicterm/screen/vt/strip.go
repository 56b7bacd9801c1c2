package vt

import (
	"bytes"
	"unicode/utf8"
)

// A Stripper removes the queries that a terminal would answer from old output: when
// that is replayed, the program no longer waits for the answer, and a shell would
// take it for typed input.
//
// It removes ENQ and single bytes that are C1 control characters to an 8-bit terminal, and
// replaces C1 control characters in UTF-8 by what they stand for in 7 bits. Images keep
// their place, and are told not to report that they were shown.
type Stripper struct {
	c1    c1Filter
	split splitter
	open  bool // what Strip has returned ends within a sequence
	drop  bool // the sequence that is too long to be handed out whole is removed
	known int  // bytes of the begun sequence that the terminal has already
	out   []byte
}

// StripAfter returns a Stripper for output that follows an unfinished control sequence, which
// the terminal has: all of it or the beginning, as [Parser.Continuation] returns it.
func StripAfter(begun []byte) *Stripper {
	s := new(Stripper)
	s.split.feed(begun, func([]byte) {}, func([]byte) {})
	s.known, s.open = len(s.split.seq), !s.split.ground()
	return s
}

// Strip returns b without queries. It holds an unfinished sequence back until that
// ends. The result is valid until the next call.
func (s *Stripper) Strip(b []byte) []byte {
	if s.split.ground() && !s.open && len(s.c1.held) == 0 && plainText(b) {
		return b
	}
	s.out = s.out[:0]
	s.split.feed(s.c1.filter(b),
		func(plain []byte) {
			if s.split.pieces == 1 {
				s.drop = isLongQuery(plain)
			}
			open := s.split.pieces > 0 && (!s.split.ground() || s.split.cut)
			switch {
			case s.split.pieces == 0 || !s.drop && s.split.pieces > 1:
				s.showRest(plain, open)
			case !s.drop:
				s.showSilent(plain, open)
			case s.split.pieces == 1:
				s.endCutOff()
			}
		},
		func(sequence []byte) {
			if isQuery(sequence) || nearlyLong(silenceImage(sequence)) && isLongQuery(sequence) {
				s.endCutOff()
			} else {
				s.showSilent(sequence, s.split.cut)
			}
		})
	return s.out
}

// nearlyLong reports whether a sequence, as it is shown, would be too long to be handed out whole if
// endCutOff ended it. Then the Stripper decides as about a long one, so that stripping again changes nothing.
func nearlyLong(sequence []byte) bool {
	return len(bytes.TrimSuffix(sequence, []byte("\x1b\\"))) > maxSequence-len("\x1b\\")
}

// endCutOff ends the sequence that a removed query cut off: without the query, that would
// swallow the bytes that follow or form a query with them.
func (s *Stripper) endCutOff() {
	s.known = 0
	if s.open {
		s.out = append(s.out, "\x1b\\"...)
		s.open = false
	}
}

// showSilent shows a sequence, or the beginning of one, that the terminal does not answer.
func (s *Stripper) showSilent(sequence []byte, open bool) {
	if s.known == 0 {
		sequence = silenceImage(sequence)
	}
	s.showRest(sequence, open)
}

// showRest shows what the terminal does not have of b, behind which it is within a sequence if open is true.
func (s *Stripper) showRest(b []byte, open bool) {
	n := min(s.known, len(b))
	s.known -= n
	s.out = append(s.out, b[n:]...)
	s.open = open
}

// Rest returns the bytes that Strip holds back, and resets the Stripper.
func (s *Stripper) Rest() []byte {
	dropped := s.drop && s.split.pieces > 0
	rest := s.split.rest()
	rest = rest[min(s.known, len(rest)):]
	if dropped {
		rest = nil // its beginning was removed
	}
	rest = append(rest, s.c1.held...)
	s.c1, s.open, s.drop, s.known = c1Filter{}, false, false, 0
	return rest
}

// plainText reports whether b has ASCII characters only, and none that Strip looks at.
func plainText(b []byte) bool {
	return !bytes.ContainsFunc(b, func(r rune) bool { return r >= 0x80 || r == esc || r == enq })
}

// A c1Filter removes ENQ and C1 control characters. Those in UTF-8, which terminals obey,
// and any ST, which may end a string, become their forms of 7 bits.
type c1Filter struct {
	held []byte // the beginning of a character
	out  []byte
}

// filter returns b filtered. The result is valid until the next call.
func (f *c1Filter) filter(b []byte) []byte {
	f.out = f.out[:0]
	if len(f.held) > 0 {
		b = append(f.held, b...)
		f.held = nil
	}
	for len(b) > 0 {
		if !utf8.FullRune(b) {
			f.held = bytes.Clone(b)
			break
		}
		r, n := utf8.DecodeRune(b)
		c := b[0]
		switch {
		case c == enq:
		case r == utf8.RuneError && n == 1 && c == 0x9c, r == 0x9c:
			f.out = append(f.out, esc, '\\')
		case r == utf8.RuneError && n == 1 && c < 0xa0:
		case r >= 0x80 && r < 0xa0:
			f.out = append(f.out, esc, byte(r-0x40))
		default:
			f.out = append(f.out, b[:n]...)
		}
		b = b[n:]
	}
	return f.out
}
