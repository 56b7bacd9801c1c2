package vt

import (
	"bytes"
	"strings"
)

// enq asks a terminal for its answerback message.
const enq = 0x05

// A Stripper removes the queries that a terminal would answer from old output: when
// that is replayed, the program no longer waits for the answer, and a shell would
// take it for typed input.
type Stripper struct {
	split Splitter
	shown Splitter // state after the bytes that Strip has returned
	out   []byte
}

// Strip returns b without queries. It holds an unfinished sequence back until that
// ends. The result is valid until the next call.
func (s *Stripper) Strip(b []byte) []byte {
	if s.split.Ground() && s.shown.Ground() && bytes.IndexByte(b, esc) < 0 && bytes.IndexByte(b, enq) < 0 {
		return b
	}
	s.out = s.out[:0]
	s.split.Split(b,
		func(plain []byte) {
			if s.split.long { // an image or the like, which is no query
				s.show(plain)
				return
			}
			for part := range bytes.SplitSeq(plain, []byte{enq}) {
				s.show(part)
			}
		},
		func(sequence []byte) {
			switch {
			case !isQuery(sequence):
				s.show(sequence)
			case !s.shown.Ground():
				// The query cut off another sequence. Without the query, that
				// would swallow the bytes that follow or form a query with
				// them: ST ends it.
				s.show([]byte("\x1b\\"))
			}
		})
	return s.out
}

func (s *Stripper) show(b []byte) {
	s.shown.Split(b, func([]byte) {}, func([]byte) {})
	s.out = append(s.out, b...)
}

// Rest returns the bytes that Strip holds back, and resets the Stripper.
func (s *Stripper) Rest() []byte {
	s.shown = Splitter{}
	return s.split.Rest()
}

// isQuery reports whether a terminal answers a sequence. It knows the queries of
// xterm's "Control Sequences" and of kitty's and iTerm2's extensions.
func isQuery(sequence []byte) bool {
	if len(sequence) < 2 {
		return false
	}
	switch body := string(sequence[2:]); sequence[1] {
	case 'Z': // DECID
		return true
	case '[':
		return isControlQuery(body)
	case ']':
		return isCommandQuery(body)
	case 'P': // DECRQSS, XTGETTCAP, XTGETXRES
		return strings.HasPrefix(body, "$q") || strings.HasPrefix(body, "+q") || strings.HasPrefix(body, "+Q")
	case '_': // kitty graphics
		return strings.HasPrefix(body, "G") && strings.Contains(body, "a=q")
	}
	return false
}

// isCommandQuery reports whether an OSC is a query: most have a question mark in
// place of a value.
func isCommandQuery(body string) bool {
	body = strings.TrimRight(body, "\a\x1b\\")
	switch number, values, _ := strings.Cut(body, ";"); number {
	case "0", "1", "2", "7", "8", "9", "777": // titles, links and messages may contain any text
		return false
	case "21": // kitty colours
		return strings.Contains(values, "=?")
	case "60", "61": // XTQALLOWED, XTQDISALLOWED
		return true
	case "99": // kitty notifications
		return strings.Contains(values, "p=?")
	case "1337":
		return strings.HasPrefix(values, "Report") || strings.HasPrefix(values, "Capabilities")
	}
	return strings.Contains(body, ";?")
}

// isControlQuery reports whether a CSI sequence, given without ESC [, is a query.
func isControlQuery(body string) bool {
	if body == "" {
		return false
	}
	parameters, final := body[:len(body)-1], body[len(body)-1]
	switch final {
	case 'c': // DA1, DA2, DA3
		return true
	case 'n': // DSR; with > it disables key modifiers
		return !strings.HasPrefix(parameters, ">")
	case 'p': // DECRQM
		return strings.HasSuffix(parameters, "$")
	case 'q': // XTVERSION
		return strings.HasPrefix(parameters, ">")
	case 'm', 'g': // XTQMODKEYS, XTQFMTKEYS
		return strings.HasPrefix(parameters, "?")
	case 'u': // kitty keyboard flags, DECRQUPSS, DECRQTSR
		return strings.HasPrefix(parameters, "?") || parameters == "&" || strings.HasSuffix(parameters, "$")
	case 'v': // DECRQDE
		return parameters == `"`
	case 'x': // DECREQTPARM
		return parameters == "" || parameters == "0" || parameters == "1"
	case 'R': // XTREPORTCOLORS
		return parameters == "#"
	case 'S': // XTSMGRAPHICS, XTTITLEPOS
		return strings.HasPrefix(parameters, "?") || parameters == "#"
	case 'w', 'y': // DECRQPSR, DECRQCRA
		return strings.HasSuffix(parameters, "$") || strings.HasSuffix(parameters, "*")
	case '|': // XTREPORTSGR, DECRQLP
		return strings.HasSuffix(parameters, "#") || strings.HasSuffix(parameters, "'")
	case 't': // reports of XTWINOPS
		if strings.HasSuffix(parameters, "$") {
			return false // DECRARA
		}
		switch first, _, _ := strings.Cut(parameters, ";"); first {
		case "11", "13", "14", "15", "16", "18", "19", "20", "21":
			return true
		}
	}
	return false
}
