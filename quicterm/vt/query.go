package vt

import (
	"bytes"
	"strings"
)

// enq asks a terminal for its answerback message.
const enq = 0x05

// A Stripper removes from the output of a program what a terminal would answer:
// when it is shown again, or late, nobody waits for the answer, and a shell would
// take it for typed.
type Stripper struct {
	split Splitter
	out   []byte
}

// Strip returns b without queries. A sequence that has begun is held back until
// it ends. The result is valid until the next call.
func (s *Stripper) Strip(b []byte) []byte {
	s.out = s.out[:0]
	s.split.Split(b,
		func(plain []byte) {
			for part := range bytes.SplitSeq(plain, []byte{enq}) {
				s.out = append(s.out, part...)
			}
		},
		func(sequence []byte) {
			if !isQuery(sequence) {
				s.out = append(s.out, sequence...)
			}
		})
	return s.out
}

// Rest returns what was held back, and begins anew.
func (s *Stripper) Rest() []byte { return s.split.Rest() }

// isQuery reports whether a terminal answers a sequence: those of xterm's
// "Control Sequences", and of kitty's and iTerm2's extensions.
func isQuery(sequence []byte) bool {
	if len(sequence) < 2 {
		return false
	}
	switch body := string(sequence[2:]); sequence[1] {
	case 'Z': // DECID
		return true
	case '[':
		return isControlQuery(body)
	case ']': // colours, fonts, clipboard: a question mark in place of a value
		body = strings.TrimRight(body, "\a\x1b\\")
		return strings.HasSuffix(body, ";?") || strings.Contains(body, ";?;") ||
			strings.HasPrefix(body, "1337;Report")
	case 'P': // DECRQSS, XTGETTCAP
		return strings.HasPrefix(body, "$q") || strings.HasPrefix(body, "+q")
	case '_': // kitty graphics
		return strings.HasPrefix(body, "G") && strings.Contains(body, "a=q")
	}
	return false
}

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
	case 'u': // kitty keyboard flags
		return strings.HasPrefix(parameters, "?")
	case 'x': // DECREQTPARM
		return parameters == "" || parameters == "0" || parameters == "1"
	case 'S': // XTSMGRAPHICS
		return strings.HasPrefix(parameters, "?")
	case 'w', 'y': // DECRQPSR, DECRQCRA
		return strings.HasSuffix(parameters, "$") || strings.HasSuffix(parameters, "*")
	case 't': // reports of XTWINOPS
		switch first, _, _ := strings.Cut(parameters, ";"); first {
		case "11", "13", "14", "15", "16", "18", "19", "20", "21":
			return true
		}
	}
	return false
}
