package terminal

// An escapeFilter finds escapes in typed bytes: the escape character at the start of a
// line and the character after it, as in ssh.
type escapeFilter struct {
	char      byte // the escape character, 0 for none
	lineStart bool
	held      bool // the escape character was typed at the start of a line, and nothing since
}

// newEscapeFilter returns a filter for an escape character as the settings have it: a character, or "none".
func newEscapeFilter(char string) *escapeFilter {
	f := &escapeFilter{lineStart: true}
	if len(char) == 1 {
		f.char = char[0]
	}
	return f
}

// filter calls send for typed bytes that are no escapes and run for each escape, in the
// order of typed. If run returns false, the escape is unknown, and filter sends it. An
// escape character is held until the next byte, with which it is sent in one call.
func (f *escapeFilter) filter(typed []byte, send func([]byte), run func(escape byte) (known bool)) {
	if f.char == 0 {
		send(typed)
		return
	}
	if f.held {
		f.held = false
		typed = append([]byte{f.char}, typed...)
	}
	start := 0
	sendUntil := func(end int) {
		if end > start {
			send(typed[start:end])
		}
	}
	for i := 0; i < len(typed); i++ {
		if !f.lineStart || typed[i] != f.char {
			f.lineStart = typed[i] == '\r' || typed[i] == '\n'
			continue
		}
		sendUntil(i)
		start = i
		if i+1 == len(typed) {
			f.held = true
			return
		}
		switch next := typed[i+1]; {
		case next == f.char:
			start, i = i+1, i+1
			f.lineStart = false
		case run(next):
			start, i = i+2, i+1
		default:
			f.lineStart = false
		}
	}
	sendUntil(len(typed))
}

// end sends what is held: no further byte comes.
func (f *escapeFilter) end(send func([]byte)) {
	if f.held {
		f.held = false
		send([]byte{f.char})
	}
}
