// Package vt finds the control sequences in the output that a program sends to a terminal, by one
// table: a [Parser] for emulators, which obey them, and a [Stripper], which takes the queries out of
// output that is shown again. It does not know what is on the screen.
package vt

import "unicode/utf8"

const (
	// maxParameters bounds the parameters and sub-parameters of a control sequence. Colours
	// in SGR need most; xterm takes 30, and programs send fewer.
	maxParameters = 64
	// maxValue bounds a parameter, so that sums of two parameters and a position never overflow.
	maxValue = 1<<31 - 1
	// maxString bounds the bytes of a string that Handler.String gets at once: titles, links and
	// colours are shorter. Images and clipboards are longer, and come in parts.
	maxString = 4 << 10
	// maxRaw bounds the bytes that are kept of an unfinished sequence.
	maxRaw = 4 << 10
	// tooMany stands for more than two intermediate bytes.
	tooMany = 0xffff
)

// Control characters that matter here (ECMA-48).
const (
	enq = 0x05 // asks a terminal for its answerback message
	bel = 0x07
	can = 0x18
	sub = 0x1a
	esc = 0x1b
	del = 0x7f
)

// A Part says what a string that a Handler gets is of the whole one.
type Part uint8

const (
	First Part = 1 << iota
	Last
	Cancelled // the last one that comes: the terminal is to forget the string

	Whole = First | Last
)

// A Handler obeys what a Parser finds. It must not retain slices or the Control.
type Handler interface {
	// Print shows printable ASCII characters.
	Print(text []byte)
	// Rune shows one printable character that is not ASCII.
	Rune(r rune)
	// Broken gets bytes of text that are not UTF-8, which xterm.js drops.
	Broken(b []byte)
	// Execute obeys a control character, C0 or C1.
	Execute(c byte)
	// Escape obeys ESC, intermediate bytes and a final byte. More than two intermediate bytes are given as 0xffff.
	Escape(intermediates uint16, final byte)
	// Control obeys a CSI sequence.
	Control(c *Control)
	// String obeys a string, or a part of it. The kind is the byte that begins it after ESC: ] for OSC,
	// P for DCS, _ for APC, ^ for PM, X for SOS. Each 4 KiB of a longer string are a part.
	String(kind byte, data []byte, part Part)
}

// A Control is a CSI sequence.
type Control struct {
	Prefix        byte   // one of < = > ?, or 0
	Intermediates uint16 // one or two bytes, the last one lowest; 0xffff if there are more
	Final         byte

	values [maxParameters]int32
	sub    uint64 // bit i: values[i] is a sub-parameter
	n      int
}

// Len returns the number of parameters and sub-parameters, at least 1.
func (c *Control) Len() int { return c.n }

// Value returns the parameter or sub-parameter i: 0 for an empty parameter, -1 for an empty sub-parameter.
func (c *Control) Value(i int) int { return int(c.values[i]) }

// Sub reports whether the value i is a sub-parameter of the ones before it.
func (c *Control) Sub(i int) bool { return c.sub>>i&1 != 0 }

// Param returns the parameter i, without counting sub-parameters, or 0 if there is none.
func (c *Control) Param(i int) int {
	if c.sub == 0 {
		if i < c.n {
			return int(c.values[i])
		}
		return 0
	}
	for k := range c.n {
		if c.Sub(k) {
			continue
		}
		if i == 0 {
			return int(c.values[k])
		}
		i--
	}
	return 0
}

// Count returns the parameter i for functions whose smallest and default count is 1.
func (c *Control) Count(i int) int { return max(c.Param(i), 1) }

func (c *Control) reset() {
	c.Prefix, c.Intermediates, c.sub, c.n = 0, 0, 0, 1
	c.values[0] = 0
}

func (c *Control) addByte(b byte) {
	switch b {
	case ';', ':':
		if c.n >= maxParameters {
			c.n = maxParameters + 1 // digits of further parameters are dropped
			return
		}
		c.values[c.n] = 0
		if b == ':' {
			c.values[c.n] = -1
			c.sub |= 1 << c.n
		}
		c.n++
	default:
		if c.n <= maxParameters {
			v := max(int64(c.values[c.n-1]), 0)
			c.values[c.n-1] = int32(min(v*10+int64(b-'0'), maxValue))
		}
	}
}

// A Parser finds control sequences in the output of a program. How the output is cut into
// chunks makes no difference. The zero value is ready.
type Parser struct {
	phase   phase
	kind    byte // of the string
	control Control
	data    []byte // of the string
	long    bool   // the first part of the string was handed out

	char  [utf8.UTFMax]byte // the beginning of a character
	nchar int

	raw  []byte // the beginning of the unfinished sequence
	cut  bool   // the sequence exceeds maxRaw
	rest int    // where in the chunk it continues
}

// Ground reports whether the output so far ends outside of a control sequence and of a character.
func (p *Parser) Ground() bool { return p.phase == inText && p.nchar == 0 }

// Continuation returns the bytes since the parser was last at ground, without control characters that were executed
// already. It begins with ESC also if the output has a C1 control character. If the sequence is longer than 4 KiB, it
// is not whole, and raw is its beginning. The result is valid until the next call of Parse.
func (p *Parser) Continuation() (raw []byte, whole bool) { return p.raw, !p.cut }

// Parse calls the handler for each part of b in order.
func (p *Parser) Parse(b []byte, h Handler) {
	p.rest = 0
	i := 0
	if p.nchar > 0 {
		i = p.finishChar(b, h)
	}
	for i < len(b) {
		c := b[i]
		if p.phase == inText {
			if c-' ' < del-' ' {
				n := Printable(b[i:])
				h.Print(b[i : i+n])
				i += n
				continue
			}
			if c == esc { // the most frequent step
				p.raw, p.cut, p.rest = append(p.raw[:0], esc), false, i+1
				p.phase = inEscape
				p.control.reset()
				i++
				if i < len(b) && b[i] == '[' {
					p.phase = inControl
					p.begin(i+1, esc, '[')
					i = p.parameters(b, i+1, h)
				}
				continue
			}
		}
		if p.phase >= inCommand {
			if n := Printable(b[i:]); n > 0 { // as the table says, but faster: images are long
				p.putASCII(b[i:i+n], h)
				i += n
				continue
			}
		}
		if c < utf8.RuneSelf {
			p.step(rune(c), i+1, h)
			i++
			continue
		}
		r, n := decode(b[i:])
		if n == 0 {
			p.keepChar(b[i:], i)
			break
		}
		i += n
		switch {
		case r >= 0:
			p.step(r, i, h)
		case p.phase == inText && n == 1: // no byte order mark
			h.Broken(b[i-n : i])
		}
	}
	p.keepRaw(b)
}

// parameters reads what most CSI sequences have from the index i on, as the table says, but faster. It
// returns the index of what is left to the table.
func (p *Parser) parameters(b []byte, i int, h Handler) (next int) {
	for ; i < len(b); i++ {
		switch c := b[i]; {
		case c >= '0' && c <= ';':
			p.control.addByte(c)
			p.phase = inControlParameters
		case c >= '@' && c <= '~':
			p.phase = inText
			p.dispatch(c, h)
			return i + 1
		default:
			return i
		}
	}
	return i
}

func (p *Parser) dispatch(final byte, h Handler) {
	p.control.Final = final
	p.control.n = min(p.control.n, maxParameters)
	h.Control(&p.control)
}

// step makes the transition for a character before the index next of the chunk.
func (p *Parser) step(r rune, next int, h Handler) {
	t := table[p.phase][min(r, wideChar)]
	p.phase = t.next
	switch t.action {
	case printChar:
		h.Rune(r)
	case execute:
		h.Execute(byte(r))
	case begin:
		p.control.reset()
		if r == esc {
			p.begin(next, esc)
		} else {
			p.begin(next, esc, '[')
		}
	case gather:
		if r >= '<' {
			p.control.Prefix = byte(r)
		} else if m := &p.control.Intermediates; *m > 0xff {
			*m = tooMany
		} else {
			*m = *m<<8 | uint16(r)
		}
	case parameter:
		p.control.addByte(byte(r))
	case dispatchEscape:
		h.Escape(p.control.Intermediates, byte(r))
	case dispatchControl:
		p.dispatch(byte(r), h)
	case beginString:
		p.kind, p.data, p.long = byte(r), p.data[:0], false
		if r >= 0x80 {
			p.kind -= 0x40
		}
		p.begin(next, esc, p.kind)
	case put:
		if len(p.data)+utf8.UTFMax > maxString {
			p.string(h, 0)
		}
		p.data = utf8.AppendRune(p.data, r)
	case endString:
		if r == bel || r == esc || r == 0x9c {
			p.string(h, Last)
		} else {
			p.string(h, Cancelled)
		}
		p.long = false
		switch {
		case r == esc:
			p.control.reset()
			p.begin(next, esc)
		case r >= 0x80 && r != 0x9c: // a C1 control character ends the string and has its own meaning
			p.step(r, next, h)
		}
	}
}

// putASCII adds characters to the string. Its parts end where they would if each character came alone.
func (p *Parser) putASCII(text []byte, h Handler) {
	for len(text) > 0 {
		if len(p.data)+utf8.UTFMax > maxString {
			p.string(h, 0)
		}
		n := min(len(text), maxString-utf8.UTFMax+1-len(p.data))
		p.data = append(p.data, text[:n]...)
		text = text[n:]
	}
}

// string hands out what has come of the string.
func (p *Parser) string(h Handler, part Part) {
	if !p.long {
		part |= First
	}
	h.String(p.kind, p.data, part)
	p.data, p.long = p.data[:0], true
}

// begin records how a sequence begins, which continues at an index of the chunk. Control characters
// and bytes within the introducer do not count.
func (p *Parser) begin(rest int, introducer ...byte) {
	p.raw, p.cut, p.rest = append(p.raw[:0], introducer...), false, rest
}

// decode returns the first character of b and its length, n == 0 if b ends within it, and
// r < 0 for n bytes that are dropped.
func decode(b []byte) (r rune, n int) {
	r, n = utf8.DecodeRune(b)
	if r != utf8.RuneError || n > 1 {
		if r == '\ufeff' {
			return -1, n
		}
		return r, n
	}
	if !utf8.FullRune(b) {
		return 0, 0
	}
	return -1, 1
}

// keepChar keeps the beginning of a character, at index i of the chunk, until its end comes.
func (p *Parser) keepChar(b []byte, i int) {
	if p.phase == inText {
		p.begin(i)
	}
	p.nchar = copy(p.char[:], b)
}

// finishChar completes the character that an earlier chunk began, and returns how many bytes of b belong to it.
func (p *Parser) finishChar(b []byte, h Handler) (used int) {
	for used < len(b) {
		p.char[p.nchar] = b[used]
		p.nchar++
		r, n := decode(p.char[:p.nchar])
		switch {
		case n == 0:
			used++
			continue
		case n < p.nchar: // the new byte does not continue the character
			if p.phase == inText {
				h.Broken(p.char[:p.nchar-1])
			}
			p.nchar = 0
			return used
		}
		p.nchar = 0
		if r >= 0 {
			p.step(r, used+1, h)
		}
		return used + 1
	}
	return used
}

func (p *Parser) keepRaw(b []byte) {
	if p.Ground() {
		p.raw, p.cut = p.raw[:0], false
		return
	}
	inString := p.phase == inCommand || p.phase == inDevice || p.phase == inOther
	for _, c := range b[min(p.rest, len(b)):] {
		if c < ' ' && !inString { // was executed
			if n := len(p.raw); n == 0 || p.raw[n-1] < utf8.RuneSelf {
				continue
			}
			c = del // is ignored, and keeps what was no character from becoming one
		}
		if len(p.raw) >= maxRaw {
			p.cut = true
			return
		}
		p.raw = append(p.raw, c)
	}
}
