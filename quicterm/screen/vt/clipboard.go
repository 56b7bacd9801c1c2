package vt

import "bytes"

// maxSelections bounds what comes before the text of an OSC 52, in bytes: a selection is a letter. More is removed.
const maxSelections = 64

const (
	leadC1 = 0xc2 // begins a C1 control character in UTF-8, which ends with one of these
	c1ST   = 0x9c
	c1OSC  = 0x9d
)

// A ClipboardFilter removes from live output what asks the terminal for the clipboard: OSC 52 with a question mark in place
// of a text. A terminal that answers would type what a person has copied elsewhere into the session. All else stays as it
// is, also OSC 52 that sets the clipboard. How the output is cut makes no difference. The zero value is ready.
//
// It is stricter than a [Parser]: no byte that some terminals ignore hides a question. What a multiplexer on the way to the
// terminal would put together is not seen.
type ClipboardFilter struct {
	phase clipboardPhase
	held  []byte // of earlier output, if it may begin a question
	count int    // bytes of what may be a question
	begun bool   // the terminal has ESC, and what may be a question follows
	out   []byte
}

// A clipboardPhase says how much of a question has come. Their order counts: next compares them, and what is before
// removing may still turn out to be something else.
type clipboardPhase uint8

const (
	asksNothing  clipboardPhase = iota
	afterEscape                 // ESC
	removingST                  // a question, and ESC, which may begin ST
	afterLead                   // leadC1
	inNumber                    // OSC, and any zeros
	afterFive                   // OSC 5
	afterNumber                 // OSC 52
	inSelections                // OSC 52 ;
	beforeText                  // OSC 52 ; selections ;
	removing                    // a question
	removed                     // a question and its end, or what is one for some terminals only
)

// Filter returns b without questions. It holds back what may begin one. The result is valid until the next call.
func (f *ClipboardFilter) Filter(b []byte) []byte {
	f.out = f.out[:0]
	done, begins := 0, 0 // b[:done] is in out or removed; what may be a question is held and b[begins:i]
	find := introducers{b, -1}
	for i := 0; i < len(b); i++ {
		if f.phase == asksNothing {
			if i = find.from(i); i == len(b) {
				break
			}
		}
		c, was := b[i], f.phase
		f.phase = was.next(c)
		switch {
		case c == esc, f.phase == afterLead, c == c1OSC && was < afterLead: // an introducer
			f.release()
			begins, f.count, f.begun = i, 1, c == c1OSC && was != asksNothing
		case f.phase == asksNothing:
			f.release()
			if was == afterLead {
				i--
			}
		case f.phase == afterEscape: // and what the terminal obeys or ignores
			f.release()
			begins, f.begun = i+1, true
		case f.phase < removing && f.count < maxSelections:
			f.count++
		default:
			f.out = append(f.out, b[done:max(done, begins)]...)
			if f.begun {
				f.out = append(f.out, can)
			}
			f.held, f.begun = f.held[:0], false
			done, begins = i+1, i+1
			if f.phase == removed {
				f.phase = asksNothing
			} else {
				f.phase = removing
			}
		}
	}
	if f.phase == asksNothing {
		begins = len(b)
		if done == 0 && len(f.out) == 0 {
			return b
		}
	}
	f.out = append(f.out, b[done:max(done, begins)]...)
	f.held = append(f.held, b[begins:]...)
	return f.out
}

// release passes what is held: it belongs to no question.
func (f *ClipboardFilter) release() {
	f.out = append(f.out, f.held...)
	f.held = f.held[:0]
}

// Rest returns what Filter holds back, and resets the ClipboardFilter. Of a question that was removed and has not ended, it
// returns a beginning.
func (f *ClipboardFilter) Rest() []byte {
	rest := f.held
	if f.phase == removing || f.phase == removingST {
		rest = append([]byte("\x1b]52;;?"), rest...)
	}
	*f = ClipboardFilter{}
	return rest
}

// next returns the phase after a byte.
func (p clipboardPhase) next(c byte) clipboardPhase {
	ignored := c < ' ' || c >= del
	switch {
	case c == esc && p == removing:
		return removingST
	case c == esc:
		return afterEscape
	case p == removing:
		if c == bel || c == can || c == sub || c == c1ST {
			return removed
		}
		return removing
	case p == removingST && c == '\\':
		return removed
	case p == asksNothing && c == leadC1:
		return afterLead
	case p <= afterLead && c == c1OSC, (p == afterEscape || p == removingST) && c == ']':
		return inNumber
	case c == can, c == sub, p == afterLead:
		return asksNothing
	case p == afterEscape || p == removingST:
		if ignored {
			return afterEscape
		}
		return asksNothing
	case c == bel:
		return asksNothing
	case c >= 0x80 && c < 0xa0: // C1 to some terminals, and to others nothing, or a part of a character
		return removed
	case ignored, p == inNumber && c == '0', p == inSelections && c != ';':
		return p
	case p == beforeText && c == '?':
		return removing
	case p < beforeText && c == "52;;"[p-inNumber]:
		return p + 1
	}
	return asksNothing
}

// introducers finds what may begin an OSC in output.
type introducers struct {
	b  []byte
	c1 int // where leadC1 and c1OSC are next, or the length of b; -1 if it is not known
}

// from returns the first index from i on, or the length of the output, at whose end a character may be cut off.
func (s *introducers) from(i int) int {
	if s.c1 < i {
		if s.c1 = bytes.Index(s.b[i:], []byte{leadC1, c1OSC}); s.c1 >= 0 {
			s.c1 += i
		} else if s.c1 = len(s.b); s.b[s.c1-1] == leadC1 {
			s.c1--
		}
	}
	for ; i < s.c1; i += 2 {
		n := bytes.IndexByte(s.b[i:s.c1], esc)
		if n < 0 {
			break
		}
		if i += n; i+1 == len(s.b) || s.b[i+1] != '[' { // CSI is the most frequent
			return i
		}
	}
	return s.c1
}
