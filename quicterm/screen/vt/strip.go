package vt

import "bytes"

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
	shown splitter // state after the bytes that Strip has returned
	drop  bool     // the sequence that is too long to be handed out whole is removed
	known int      // bytes of the begun sequence that the terminal has already
	out   []byte
}

// StripAfter returns a Stripper for output that follows an unfinished control sequence, which
// the terminal has: all of it or the beginning, as [Parser.Continuation] returns it.
func StripAfter(begun []byte) *Stripper {
	s := new(Stripper)
	for _, split := range []*splitter{&s.split, &s.shown} {
		split.feed(begun, func([]byte) {}, func([]byte) {})
	}
	s.known = len(s.split.seq)
	return s
}

// Strip returns b without queries. It holds an unfinished sequence back until that
// ends. The result is valid until the next call.
func (s *Stripper) Strip(b []byte) []byte {
	if s.split.ground() && s.shown.ground() && s.c1.ground() && plainText(b) {
		return b
	}
	s.out = s.out[:0]
	s.split.feed(s.c1.filter(b),
		func(plain []byte) {
			if s.split.pieces == 1 {
				s.drop = isLongQuery(plain)
			}
			switch {
			case s.split.pieces == 0 || !s.drop && s.split.pieces > 1:
				s.showRest(plain)
			case !s.drop:
				s.showSilent(plain)
			case s.split.pieces == 1:
				s.endCutOff()
			}
		},
		func(sequence []byte) {
			if isQuery(sequence) || nearlyLong(silenceImage(sequence)) && isLongQuery(sequence) {
				s.endCutOff()
			} else {
				s.showSilent(sequence)
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
	if !s.shown.ground() {
		s.show([]byte("\x1b\\"))
	}
}

// showSilent shows a sequence, or the beginning of one, that the terminal does not answer.
func (s *Stripper) showSilent(sequence []byte) {
	if s.known == 0 {
		sequence = silenceImage(sequence)
	}
	s.showRest(sequence)
}

// showRest shows what the terminal does not have of b.
func (s *Stripper) showRest(b []byte) {
	n := min(s.known, len(b))
	s.known -= n
	s.show(b[n:])
}

func (s *Stripper) show(b []byte) {
	s.shown.feed(b, func([]byte) {}, func([]byte) {})
	s.out = append(s.out, b...)
}

// Rest returns the bytes that Strip holds back, and resets the Stripper.
func (s *Stripper) Rest() []byte {
	dropped := s.drop && s.split.pieces > 0
	rest := s.split.rest()
	rest = rest[min(s.known, len(rest)):]
	if dropped {
		rest = nil // its beginning was removed
	}
	if s.c1.pending {
		rest = append(rest, c1Lead)
	}
	s.c1, s.shown, s.drop, s.known = c1Filter{}, splitter{}, false, 0
	return rest
}

// plainText reports whether b has ASCII characters only, and none that Strip looks at.
func plainText(b []byte) bool {
	return !bytes.ContainsFunc(b, func(r rune) bool { return r >= 0x80 || r == esc || r == enq })
}

// c1Lead is the first byte of a C1 control character in UTF-8.
const c1Lead = 0xc2

// A c1Filter removes ENQ and C1 control characters. Those in UTF-8, which terminals obey,
// and any ST, which may end a string, become their forms of 7 bits.
type c1Filter struct {
	low, high byte // the range of the next byte of a character in UTF-8
	left      int  // how many more bytes it has
	pending   bool // c1Lead is held back
	out       []byte
}

// ground reports whether the bytes so far end with a whole character.
func (f *c1Filter) ground() bool { return !f.pending && f.left == 0 }

// filter returns b filtered. The result is valid until the next call.
func (f *c1Filter) filter(b []byte) []byte {
	f.out = f.out[:0]
	for _, c := range b {
		if f.pending {
			f.pending, f.left = false, 0
			if c >= 0x80 && c < 0xa0 {
				f.out = append(f.out, esc, c-0x40)
				continue
			}
			f.out = append(f.out, c1Lead)
			if c >= 0xa0 && c < 0xc0 {
				f.out = append(f.out, c)
				continue
			}
		}
		if f.left > 0 && c >= f.low && c <= f.high {
			f.left--
			f.low, f.high = 0x80, 0xbf
			f.out = append(f.out, c)
			continue
		}
		f.left = 0
		switch {
		case c == enq:
		case c == 0x9c:
			f.out = append(f.out, esc, '\\')
		case c >= 0x80 && c < 0xa0:
		case c == c1Lead:
			f.pending = true
		default:
			f.begin(c)
			f.out = append(f.out, c)
		}
	}
	return f.out
}

// begin begins a character of several bytes if c is the first byte of one (RFC 3629, 4).
func (f *c1Filter) begin(c byte) {
	f.low, f.high = 0x80, 0xbf
	switch {
	case c > 0xc2 && c < 0xe0:
		f.left = 1
	case c >= 0xe0 && c < 0xf0:
		f.left = 2
	case c >= 0xf0 && c < 0xf5:
		f.left = 3
	}
	switch c {
	case 0xe0:
		f.low = 0xa0
	case 0xed:
		f.high = 0x9f
	case 0xf0:
		f.low = 0x90
	case 0xf4:
		f.high = 0x8f
	}
}
