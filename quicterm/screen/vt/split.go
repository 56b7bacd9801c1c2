package vt

import "bytes"

// maxSequence bounds the length in bytes of a control sequence that feed hands out
// whole. Only images and clipboards are longer, and no caller inspects those.
const maxSequence = 4 << 10

// Control characters that matter here (ECMA-48).
const (
	bel = 0x07
	can = 0x18
	sub = 0x1a
	esc = 0x1b
	del = 0x7f
)

// A splitter splits the output of a program, by the parser's table, into the bytes of control
// sequences and those between them. A sequence may begin in one call of feed and end in another.
type splitter struct {
	phase  phase
	ending bool   // the last byte is an ESC that may end a string
	seq    []byte // the begun sequence, without the part already handed out
	pieces int    // of the sequence that were handed out, because it exceeds maxSequence
	cut    bool   // the last sequence was cut off: it has no end
}

func (s *splitter) ground() bool { return s.phase == inText }

// feed calls sequence for each whole control sequence, and plain for the bytes
// between sequences and for the pieces of sequences that are too long, in the order
// of b. Concatenated, the arguments of all these calls are the output. feed does
// not retain b.
func (s *splitter) feed(b []byte, plain, sequence func([]byte)) {
	for len(b) > 0 {
		if s.phase == inText {
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
		if s.ending && c != '\\' {
			s.restart(plain, sequence)
		}
		switch s.next(c) {
		case within:
			s.add(c, plain)
		case last:
			s.add(c, plain)
			s.finish(false, plain, sequence)
		case beyond:
			s.finish(true, plain, sequence)
			continue // c is the first byte after the sequence
		}
		b = b[1:]
	}
}

// rest returns the held-back bytes of an unfinished sequence, and resets the splitter.
func (s *splitter) rest() []byte {
	rest := s.seq
	*s = splitter{}
	return rest
}

func (s *splitter) begin() {
	s.phase, s.ending, s.seq = inEscape, false, append(s.seq[:0], esc)
}

func (s *splitter) add(c byte, plain func([]byte)) {
	s.seq = append(s.seq, c)
	if len(s.seq) <= maxSequence {
		return
	}
	n := len(s.seq)
	if s.ending {
		n-- // the ESC may begin another sequence
	}
	s.pieces++
	plain(s.seq[:n])
	s.seq = append(s.seq[:0], s.seq[n:]...)
}

func (s *splitter) finish(cut bool, plain, sequence func([]byte)) {
	s.phase, s.ending, s.cut = inText, false, cut
	switch {
	case s.pieces == 0:
		sequence(s.seq)
	case len(s.seq) > 0:
		s.pieces++
		plain(s.seq)
	}
	s.seq, s.pieces = s.seq[:0], 0
}

// restart ends a string before its last ESC, which begins another sequence.
func (s *splitter) restart(plain, sequence func([]byte)) {
	s.seq = s.seq[:len(s.seq)-1]
	s.finish(true, plain, sequence)
	s.begin()
}

// A place is the position of a byte relative to the begun sequence.
type place int

const (
	within place = iota
	last
	beyond // the sequence was cut off before this byte
)

// next advances the state by one byte of a sequence.
func (s *splitter) next(c byte) place {
	t := table[s.phase][min(c, wideChar)]
	switch {
	case c == can, c == sub, s.ending:
		return last
	case s.phase == inCommand, s.phase == inDevice, s.phase == inOther:
		s.ending = c == esc
		if c == bel && t.next == inText {
			return last
		}
		return within
	case c == esc, c > del:
		return beyond
	case t.next == inText:
		return last
	}
	s.phase = t.next
	return within
}
