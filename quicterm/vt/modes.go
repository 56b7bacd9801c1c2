package vt

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Modes are what a program has switched on in a terminal and not off again, and
// what it has called the window.
type Modes struct {
	private   map[int]bool // DEC private modes that differ from the default
	keypad    bool         // application keypad
	graphic   bool         // G0 is not ASCII, or G1 is used
	keyboard  int          // kitty keyboard flags, pushed
	modifiers bool         // xterm's modifyOtherKeys
	cursor    bool         // the cursor has another shape
	title     []byte       // the sequence that set it last
}

// resettable are the private modes to be undone, with what is usual.
var resettable = map[int]bool{
	1:    false, // cursor keys send application sequences
	5:    false, // reverse video
	6:    false, // origin mode
	7:    true,  // wrap
	9:    false, // mouse
	25:   true,  // cursor is visible
	47:   false, // alternate screen
	66:   false, // application keypad
	1000: false, // mouse
	1002: false,
	1003: false,
	1004: false, // focus
	1005: false,
	1006: false,
	1015: false,
	1016: false,
	1047: false, // alternate screen
	1049: false,
	2004: false, // bracketed paste
	2026: false, // synchronized output
	2031: false, // colour scheme changes
	2048: false, // size changes
}

// Note takes note of a control sequence.
func (m *Modes) Note(sequence []byte) {
	if len(sequence) < 2 {
		return
	}
	switch body := string(sequence[2:]); sequence[1] {
	case 'c': // RIS
		*m = Modes{title: m.title}
	case '=', '>':
		m.keypad = sequence[1] == '='
	case '(':
		m.graphic = body != "B"
	case '[':
		m.noteControl(body)
	case ']':
		if strings.HasPrefix(body, "0;") || strings.HasPrefix(body, "2;") {
			m.title = bytes.Clone(sequence)
		}
	}
}

func (m *Modes) noteControl(body string) {
	if body == "" {
		return
	}
	parameters, final := body[:len(body)-1], body[len(body)-1]
	switch {
	case (final == 'h' || final == 'l') && strings.HasPrefix(parameters, "?"):
		for p := range strings.SplitSeq(parameters[1:], ";") {
			mode, err := strconv.Atoi(p)
			usual, known := resettable[mode]
			if err != nil || !known {
				continue
			}
			if m.private == nil {
				m.private = make(map[int]bool)
			}
			if on := final == 'h'; on == usual {
				delete(m.private, mode)
			} else {
				m.private[mode] = on
			}
		}
	case body == "!p": // DECSTR
		*m = Modes{title: m.title, keyboard: m.keyboard}
	case final == 'u' && strings.HasPrefix(parameters, ">"):
		m.keyboard++
	case final == 'u' && strings.HasPrefix(parameters, "<"):
		m.keyboard = max(0, m.keyboard-count(parameters[1:]))
	case final == 'm' && strings.HasPrefix(parameters, ">4"):
		m.modifiers = parameters != ">4" && parameters != ">4;0"
	case final == 'q' && strings.HasSuffix(parameters, " "):
		m.cursor = parameters != " " && parameters != "0 "
	}
}

// count is the value of a parameter whose default is 1.
func count(parameter string) int {
	n, err := strconv.Atoi(parameter)
	if err != nil || n < 1 {
		return 1
	}
	return n
}

// Title returns the sequence by which the program has set the window's title
// last, or nil.
func (m *Modes) Title() []byte { return m.title }

// Undo returns what gives a terminal its usual modes back, or nil if it has them.
func (m *Modes) Undo() []byte {
	var b []byte
	if m.graphic {
		b = append(b, "\x1b(B\x0f"...)
	}
	if m.keypad {
		b = append(b, "\x1b>"...)
	}
	if m.keyboard > 0 {
		b = fmt.Appendf(b, "\x1b[<%du", m.keyboard)
	}
	if m.modifiers {
		b = append(b, "\x1b[>4m"...)
	}
	if m.cursor {
		b = append(b, "\x1b[ q"...)
	}
	modes := make([]int, 0, len(m.private))
	for mode := range m.private {
		modes = append(modes, mode)
	}
	slices.Sort(modes)
	for _, mode := range modes {
		final := 'h'
		if m.private[mode] {
			final = 'l'
		}
		b = fmt.Appendf(b, "\x1b[?%d%c", mode, final)
	}
	if b != nil {
		b = append(b, "\x1b[m"...)
	}
	return b
}
