package predict

import (
	"unicode/utf8"

	"github.com/quicterm/quicterm/quicterm/screen"
)

// A class is a kind of key by what it does to a line.
type class uint8

const (
	other class = iota // a boundary: nobody can tell what it does
	enter              // a boundary after which a prompt may come: Enter, ^C, ^D
	printable
	wide // a character of two columns
	backspace
	left
	right
	home
	end
	deleteKey
	killEnd
	killStart
	killWord // back to a blank
	// What follows is told from printable and backspace by where the cursor is.
	insert
	backspaceInside
	classes
)

// A stroke is one key as it was typed.
type stroke struct {
	class class
	r     rune // of printable and wide; else what tells keys apart: a control character, or sequenceKey and more
}

const (
	sequenceKey = utf8.MaxRune + 1   // the least r of a key that sends a control sequence
	metaKey     = sequenceKey + 0x80 // of a character behind an Escape
)

// A parser finds the strokes in what a terminal sends. Its memory is that of one control sequence.
type parser struct {
	state   parserState
	pasting bool
	intro   byte   // [ or O
	body    []byte // of a sequence, or of a character
}

type parserState uint8

const (
	ground parserState = iota
	escaped
	sequence
	character
)

const (
	// maxSequence bounds a control sequence of a keyboard. The longest ones, of the mouse, have about 20 bytes.
	maxSequence = 32
	pasteStart  = "200~"
	pasteEnd    = "201~"
)

// parse calls f for the strokes in b. A paste is one boundary for each call.
func (p *parser) parse(b []byte, f func(stroke)) {
	pasted := p.pasting
	for _, c := range b {
		k, ok := p.next(c)
		if p.pasting {
			pasted = true
			continue
		}
		if ok {
			if pasted {
				f(stroke{class: other})
				pasted = false
			}
			f(k)
		}
	}
	if pasted {
		f(stroke{class: other})
	}
	if p.state == escaped { // the Escape key: a terminal sends a sequence in one piece
		p.state = ground
		f(stroke{class: other, r: 0x1b})
	}
}

// next takes one byte, and returns the stroke that it completes.
func (p *parser) next(c byte) (stroke, bool) {
	switch p.state {
	case escaped:
		return p.escape(c)
	case sequence:
		return p.sequence(c)
	case character:
		return p.character(c)
	}
	switch {
	case c == 0x1b:
		p.state = escaped
		return stroke{}, false
	case c >= utf8.RuneSelf:
		p.state, p.body = character, append(p.body[:0], c)
		return stroke{}, false
	}
	return control(c), true
}

func (p *parser) character(c byte) (stroke, bool) {
	if c < utf8.RuneSelf { // the character before was cut short
		p.state = ground
		k, ok := p.next(c)
		if !ok || p.pasting {
			return k, ok
		}
		return stroke{class: other}, true
	}
	p.body = append(p.body, c)
	if !utf8.FullRune(p.body) {
		return stroke{}, false
	}
	p.state = ground
	r, _ := utf8.DecodeRune(p.body)
	clear(p.body) // nothing typed is kept
	return stroke{classify(r), r}, true
}

// escape takes the byte behind an ESC.
func (p *parser) escape(c byte) (stroke, bool) {
	p.state = ground
	switch c {
	case '[', 'O':
		p.state, p.intro, p.body = sequence, c, p.body[:0]
		return stroke{}, false
	case 0x1b:
		p.state = escaped
	}
	return stroke{other, metaKey + rune(c)}, true
}

func (p *parser) sequence(c byte) (stroke, bool) {
	p.body = append(p.body, c)
	if (c < 0x40 || c > 0x7e) && len(p.body) < maxSequence {
		return stroke{}, false
	}
	p.state = ground
	name := string(p.body)
	switch {
	case p.intro == '[' && name == pasteStart:
		p.pasting = true
	case p.intro == '[' && name == pasteEnd:
		p.pasting = false
	}
	return stroke{sequences[name], sequenceKey + rune(c)}, true
}

// sequences are the keys behind CSI and SS3.
var sequences = map[string]class{
	"D": left, "C": right, "H": home, "F": end, "1~": home, "7~": home, "4~": end, "8~": end, "3~": deleteKey,
}

// control returns the stroke of an ASCII character.
func control(c byte) stroke {
	k := stroke{r: rune(c)}
	switch c {
	case '\r', '\n', 0x03, 0x04:
		k.class = enter
	case 0x7f, '\b':
		k.class = backspace
	case 0x01:
		k.class = home
	case 0x05:
		k.class = end
	case 0x02:
		k.class = left
	case 0x06:
		k.class = right
	case 0x0b:
		k.class = killEnd
	case 0x15:
		k.class = killStart
	case 0x17:
		k.class = killWord
	default:
		if c >= ' ' {
			k.class = printable
		}
	}
	return k
}

// classify returns the class of a character that is not ASCII. Terminals do not agree on the widths of emoji,
// symbols and combinations, so these are boundaries.
func classify(r rune) class {
	switch {
	case r >= 0xa1 && r < 0x300, r >= 0x370 && r < 0x483, r >= 0x48a && r < 0x590, r >= 0x1e00 && r < 0x2000,
		r >= 0x2010 && r < 0x2028, r == '€': // and dashes and quotes
		return printable
	case r >= 0x3001 && r < 0x3021, r >= 0x3041 && r < 0xa4d0,
		r >= 0xac00 && r < 0xd7a4, r >= 0xff01 && r < 0xff61:
		if screen.RuneWidth(r) == 2 {
			return wide
		}
	}
	return other
}
