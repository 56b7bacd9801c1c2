package main

// An escaper finds escapes in what is typed: a tilde, or another character, at
// the start of a line, and the one after it, as in ssh.
type escaper struct {
	char      byte // 0 for none
	lineStart bool
	pending   bool // char was typed at the start of a line
}

func newEscaper(char string) *escaper {
	e := &escaper{lineStart: true}
	if len(char) == 1 {
		e.char = char[0]
	}
	return e
}

// filter returns what is to be sent of typed bytes, and calls command for each
// escape, in order: with what precedes it sent already, by send.
func (e *escaper) filter(typed []byte, send func([]byte), command func(byte) (known bool)) {
	if e.char == 0 {
		send(typed)
		return
	}
	start := 0
	for i, c := range typed {
		if e.pending {
			e.pending = false
			if c == e.char {
				e.lineStart = false
				send(typed[i : i+1])
				start = i + 1
				continue
			}
			if command(c) {
				e.lineStart = true
				start = i + 1
				continue
			}
			send([]byte{e.char})
			start = i
		} else if e.lineStart && c == e.char {
			if i > start {
				send(typed[start:i])
			}
			e.pending = true
			start = i + 1
			continue
		}
		e.lineStart = c == '\r' || c == '\n'
	}
	if start < len(typed) {
		send(typed[start:])
	}
}
