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
	graphic   [2]bool      // G0, or G1, is not ASCII
	keyboard  [2]keyboard  // of the main and the alternate screen
	modifiers bool         // xterm's modifyOtherKeys
	cursor    bool         // the cursor has another shape
	title     []byte       // the sequence that set it last
}

// A keyboard is what a program has made of the kitty keyboard flags of a screen.
type keyboard struct {
	pushed int // how many flags are on the stack
	flags  int // what it has set them to before it pushed
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
	case '(', ')':
		if final := sequence[len(sequence)-1]; len(body) > 0 && final >= 0x30 { // it is whole
			m.graphic[sequence[1]-'('] = body != "B"
		}
	case '[':
		m.noteControl(body)
	case ']':
		whole := strings.HasSuffix(body, "\a") || strings.HasSuffix(body, "\x1b\\")
		if whole && (strings.HasPrefix(body, "0;") || strings.HasPrefix(body, "2;")) {
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
	case body == "!p": // DECSTR: terminals leave the rest as it is, above all the screen and the mouse
		for _, mode := range []int{1, 6, 25, 66} {
			delete(m.private, mode)
		}
		m.keypad, m.graphic = false, [2]bool{}
	case final == 'u' && parameters != "":
		m.keyboard[m.screen()].note(parameters[0], parameters[1:])
	case final == 'm' && (parameters == ">4" || strings.HasPrefix(parameters, ">4;")):
		m.modifiers = parameters != ">4" && parameters != ">4;" && parameters != ">4;0"
	case final == 'q' && strings.HasSuffix(parameters, " "):
		m.cursor = parameters != " " && parameters != "0 "
	}
}

// screen is 1 while the alternate screen is shown, else 0. Each has kitty
// keyboard flags of its own.
func (m *Modes) screen() int {
	if m.private[47] || m.private[1047] || m.private[1049] {
		return 1
	}
	return 0
}

// note takes note of CSI … u, whose first parameter byte says what it does.
func (k *keyboard) note(verb byte, parameters string) {
	switch verb {
	case '>':
		k.pushed++
	case '<':
		k.pushed -= count(parameters)
		if k.pushed < 0 { // the terminal has put its flags back to none
			*k = keyboard{}
		}
	case '=':
		if k.pushed > 0 {
			return // they go when they are popped
		}
		value, how, _ := strings.Cut(parameters, ";")
		flags, err := strconv.Atoi(value)
		switch {
		case err != nil && value != "":
		case how == "2":
			k.flags |= flags
		case how == "3":
			k.flags &^= flags
		default:
			k.flags = flags
		}
	}
}

func (k keyboard) undo(b []byte) []byte {
	if k.pushed > 0 {
		b = fmt.Appendf(b, "\x1b[<%du", k.pushed)
	}
	if k.flags != 0 {
		b = append(b, "\x1b[=0u"...)
	}
	return b
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
	if m.graphic[0] {
		b = append(b, "\x1b(B\x0f"...)
	}
	if m.graphic[1] {
		b = append(b, "\x1b)B\x0f"...)
	}
	if m.keypad {
		b = append(b, "\x1b>"...)
	}
	screen := m.screen()
	b = m.keyboard[screen].undo(b)
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
	if screen != 0 { // and now the main one is shown
		b = m.keyboard[0].undo(b)
	}
	if b != nil {
		b = append(b, "\x1b[m"...)
	}
	return b
}
