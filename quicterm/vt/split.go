// Package vt follows what a program sends to a terminal, as far as somebody has
// to who passes it on without showing it: where its control sequences begin and
// end, which of them a terminal would answer, and which modes they leave it in.
// It does not know what is on the screen.
package vt

import "bytes"

// maxSequence is how long a control sequence may be and still be handed out
// whole, in bytes. Images and clipboards are longer; nobody has to look at them.
const maxSequence = 4 << 10

// Control characters that matter here (ECMA-48).
const (
	bel = 0x07
	can = 0x18
	sub = 0x1a
	esc = 0x1b
	del = 0x7f
)

type state int

const (
	ground       state = iota
	escape             // after ESC
	intermediate       // after ESC and an intermediate byte: nothing but the end may follow
	control            // in a CSI sequence
	text               // in an OSC, DCS, APC, PM or SOS string
	textEscape         // after ESC in one, which may end it
)

// A Splitter splits the output of a program into control sequences and what is
// between them. Sequences may begin in one call of Split and end in another.
type Splitter struct {
	state state
	osc   bool   // the string is an OSC, which BEL ends as well
	seq   []byte // of the sequence that has begun, if it is not too long
	long  bool   // it is too long, and what there was of it was handed out
}

// Ground reports whether the last byte was not inside a control sequence.
func (s *Splitter) Ground() bool { return s.state == ground }

// Split calls plain for bytes outside of sequences, and for the pieces of those
// that are too long, and sequence for each whole sequence, in the order of b. All
// that it calls them with, one after the other, is what Split was called with. It
// keeps nothing of b.
func (s *Splitter) Split(b []byte, plain, sequence func([]byte)) {
	for len(b) > 0 {
		if s.state == ground {
			n := bytes.IndexByte(b, esc)
			if n < 0 {
				plain(b)
				return
			}
			if n > 0 {
				plain(b[:n])
			}
			s.begin()
			b = b[n+1:]
			continue
		}
		c := b[0]
		if s.state == textEscape && c != '\\' {
			s.restart(plain, sequence)
		}
		switch s.next(c) {
		case within:
			s.add(c, plain)
		case last:
			s.add(c, plain)
			s.finish(plain, sequence)
		case beyond:
			s.finish(plain, sequence)
			continue // it is the first byte of what follows
		}
		b = b[1:]
	}
}

// Rest returns what there is of a sequence that has begun, and forgets it.
func (s *Splitter) Rest() []byte {
	rest := s.seq
	*s = Splitter{}
	return rest
}

func (s *Splitter) begin() {
	s.state, s.seq = escape, append(s.seq[:0], esc)
}

func (s *Splitter) add(c byte, plain func([]byte)) {
	s.seq = append(s.seq, c)
	if len(s.seq) <= maxSequence {
		return
	}
	n := len(s.seq)
	if s.state == textEscape {
		n-- // the ESC may begin another sequence
	}
	s.long = true
	plain(s.seq[:n])
	s.seq = append(s.seq[:0], s.seq[n:]...)
}

func (s *Splitter) finish(plain, sequence func([]byte)) {
	s.state = ground
	switch {
	case !s.long:
		sequence(s.seq)
	case len(s.seq) > 0:
		plain(s.seq)
	}
	s.seq, s.long = s.seq[:0], false
}

// restart ends a string before the ESC that came last, which begins another
// sequence.
func (s *Splitter) restart(plain, sequence func([]byte)) {
	s.seq = s.seq[:len(s.seq)-1]
	s.finish(plain, sequence)
	s.begin()
}

// A place says where a byte is in regard to the sequence that has begun.
type place int

const (
	within place = iota
	last
	beyond // it does not belong to the sequence, which is broken off
)

// next moves to the state after a byte of a sequence.
func (s *Splitter) next(c byte) place {
	if c == can || c == sub {
		return last
	}
	switch s.state {
	case escape:
		switch {
		case c == '[':
			s.state = control
		case c == ']', c == 'P', c == '_', c == '^', c == 'X':
			s.state, s.osc = text, c == ']'
		case c >= 0x20 && c < 0x30:
			s.state = intermediate
		case c >= 0x30 && c < del:
			return last
		case c == esc, c > del:
			return beyond
		}
	case intermediate:
		switch {
		case c >= 0x30 && c < del:
			return last
		case c == esc, c > del:
			return beyond
		}
	case control:
		switch {
		case c >= 0x40 && c < del:
			return last
		case c == esc, c > del:
			return beyond
		}
	case text:
		switch {
		case c == esc:
			s.state = textEscape
		case c == bel && s.osc:
			return last
		}
	case textEscape:
		return last
	}
	return within
}
