package terminal

// An escapeFilter finds escapes in typed bytes: the escape character at the start of a
// line and the character after it, as in ssh.
type escapeFilter struct {
	char      byte // the escape character, 0 for none
	lineStart bool
	pending   bool // the escape character was typed at the start of a line
}

// newEscapeFilter returns a filter for an escape character as the settings have it: a
// character, or "none".
func newEscapeFilter(char string) *escapeFilter {
	f := &escapeFilter{lineStart: true}
	if len(char) == 1 {
		f.char = char[0]
	}
	return f
}

// filter calls send for typed bytes that are no escapes and run for each escape, in the
// order of typed. If run returns false, the escape is unknown, and filter sends it.
func (f *escapeFilter) filter(typed []byte, send func([]byte), run func(escape byte) (known bool)) {
	if f.char == 0 {
		send(typed)
		return
	}
	start := 0
	for i, c := range typed {
		if f.pending {
			f.pending = false
			if c == f.char {
				f.lineStart = false
				send(typed[i : i+1])
				start = i + 1
				continue
			}
			if run(c) {
				f.lineStart = true
				start = i + 1
				continue
			}
			send([]byte{f.char})
			start = i
		} else if f.lineStart && c == f.char {
			if i > start {
				send(typed[start:i])
			}
			f.pending = true
			start = i + 1
			continue
		}
		f.lineStart = c == '\r' || c == '\n'
	}
	if start < len(typed) {
		send(typed[start:])
	}
}
