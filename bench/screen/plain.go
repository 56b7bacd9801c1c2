//go:build linux

package screen

// A Plain tells text from control sequences in what a client writes, byte by byte. The
// zero value is ready.
type Plain struct{ sequence byte } // kind of the control sequence: 0, ESC, [ or ]

// Text reports whether a byte is text, and not of a control sequence (ECMA-48, 5.4 and
// 5.6). Of those the client itself writes the ones that set the title.
func (p *Plain) Text(c byte) bool {
	const esc, bel = 0x1b, 0x07
	switch p.sequence {
	case 0:
		if c != esc {
			return true
		}
		p.sequence = c
	case esc:
		p.sequence = 0
		if c == '[' || c == ']' {
			p.sequence = c
		}
	case '[':
		if c >= 0x40 && c <= 0x7e {
			p.sequence = 0
		}
	case ']':
		if c == esc { // the first byte of its end, ESC \
			p.sequence = c
		}
		if c == bel {
			p.sequence = 0
		}
	}
	return false
}
