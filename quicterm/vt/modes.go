package vt

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Modes tracks what a program has changed in a terminal and not changed back: modes,
// margins, cursor, colours, keyboard, mouse and title. The zero value is a terminal
// in its usual state.
type Modes struct {
	rows     int             // of the terminal, 0 if unknown
	private  map[int]bool    // DEC private modes that differ from the usual value
	insert   bool            // insert mode (IRM)
	region   bool            // the scroll region is not the whole screen
	shape    bool            // the cursor has another shape
	pen      bool            // the next character has attributes
	link     bool            // the next character is part of a hyperlink
	colors   map[string]bool // changed colours: the OSC bodies that reset them
	charsets [2]bool         // G0 or G1 is not ASCII
	keypad   bool            // application keypad
	modify   bool            // xterm's modifyOtherKeys
	keyboard [2]keyboard     // of the main and the alternate screen
	title    []byte          // the sequence that set it last
	titles   int             // pushed on the title stack and not popped
}

// A keyboard is the state of the kitty keyboard flags of one screen.
type keyboard struct {
	pushed int // entries on the stack of flags
	flags  int // below the stack
}

// alternate are the private modes that show the alternate screen. Leaving 1049
// also restores the cursor of the main screen.
var alternate = []int{47, 1047, 1049}

// The other private modes that Undo resets, by the groups in which it does.
var (
	// While synchronized output is on, a terminal shows nothing.
	synchronized = []int{2026}
	// Reverse video, origin mode, wrap, left and right margins.
	screenModes = []int{5, 6, 7, 69}
	cursorModes = []int{25}
	// Application cursor keys and keypad.
	keyModes = []int{1, 66}
	// Mouse tracking and encodings, then focus, paste, colour scheme and size reports.
	inputModes = []int{9, 1000, 1002, 1003, 1005, 1006, 1015, 1016, 1004, 2004, 2031, 2048}
)

// usual returns the usual value of a private mode, and whether Undo resets that mode.
func usual(mode int) (on, known bool) {
	for _, group := range [][]int{alternate, synchronized, screenModes, cursorModes, keyModes, inputModes} {
		if slices.Contains(group, mode) {
			return mode == 7 || mode == 25, true
		}
	}
	return false, false
}

// SetRows tells the height of the terminal. A resize makes the whole screen the scroll region.
func (m *Modes) SetRows(rows int) {
	m.rows, m.region = rows, false
}

// Observe updates the modes by a control sequence of the program.
func (m *Modes) Observe(sequence []byte) {
	if len(sequence) < 2 {
		return
	}
	switch body := sequence[2:]; sequence[1] {
	case 'c': // RIS
		*m = Modes{rows: m.rows, title: m.title, titles: m.titles}
	case '=', '>':
		m.keypad = sequence[1] == '='
	case '(', ')':
		if final := sequence[len(sequence)-1]; len(body) > 0 && final >= 0x30 { // not cut off
			m.charsets[sequence[1]-'('] = string(body) != "B"
		}
	case '[':
		if len(body) > 0 {
			m.observeControl(body[:len(body)-1], body[len(body)-1])
		}
	case ']':
		if text, whole := cutTerminator(string(body)); whole {
			m.observeCommand(text, sequence)
		}
	}
}

// cutTerminator removes BEL or ST from the end of an OSC's body.
func cutTerminator(body string) (text string, whole bool) {
	if text, whole = strings.CutSuffix(body, "\a"); !whole {
		text, whole = strings.CutSuffix(body, "\x1b\\")
	}
	return text, whole
}

// observeControl handles a CSI sequence.
func (m *Modes) observeControl(sequence []byte, final byte) {
	switch final {
	case 'm':
		if len(sequence) == 0 || sequence[0] < '<' && sequence[len(sequence)-1] >= '0' {
			m.pen = pen(m.pen, sequence)
			return
		}
	case 'h', 'l', 'r', 'p', 'u', 'q', 't':
	default:
		return
	}
	parameters := string(sequence)
	private, isPrivate := strings.CutPrefix(parameters, "?")
	switch {
	case (final == 'h' || final == 'l') && isPrivate:
		for p := range strings.SplitSeq(private, ";") {
			if mode, err := strconv.Atoi(p); err == nil {
				m.setPrivate(mode, final == 'h')
			}
		}
	case (final == 'h' || final == 'l') && slices.Contains(strings.Split(parameters, ";"), "4"):
		m.insert = final == 'h'
	case final == 'r' && strings.Trim(parameters, "0123456789;") == "":
		m.setRegion(parameters)
	case final == 'p' && parameters == "!": // DECSTR; terminals keep the alternate screen and the mouse
		for _, mode := range []int{1, 6, 25, 66, 69} {
			delete(m.private, mode)
		}
		m.insert, m.region, m.pen, m.keypad, m.charsets = false, false, false, false, [2]bool{}
	case final == 'm' && (parameters == ">4" || strings.HasPrefix(parameters, ">4;")):
		m.modify = parameters != ">4" && parameters != ">4;" && parameters != ">4;0"
	case final == 'u' && parameters != "":
		m.keyboard[m.screen()].observe(parameters[0], parameters[1:])
	case final == 'q' && strings.HasSuffix(parameters, " "):
		m.shape = parameters != " " && parameters != "0 "
	case final == 't':
		m.observeWindow(parameters)
	}
}

func (m *Modes) setPrivate(mode int, on bool) {
	usually, known := usual(mode)
	if !known {
		return
	}
	if m.private == nil {
		m.private = make(map[int]bool)
	}
	if on == usually {
		delete(m.private, mode)
	} else {
		m.private[mode] = on
	}
}

// setRegion handles DECSTBM, whose parameters are the first and the last row.
func (m *Modes) setRegion(parameters string) {
	first, last, _ := strings.Cut(parameters, ";")
	top, _ := strconv.Atoi(first)
	bottom, _ := strconv.Atoi(last)
	m.region = top > 1 || bottom > 0 && (m.rows == 0 || bottom < m.rows)
}

// pen returns whether characters have attributes after SGR, given whether they had before.
// It is fast: colourful output has more SGR than text.
func pen(before bool, parameters []byte) bool {
	color, skip := false, 0 // after 38, 48 or 58: its numbers follow
	value := 0
	for i := 0; i <= len(parameters); i++ {
		if i < len(parameters) && parameters[i] != ';' {
			if c := parameters[i]; c >= '0' && c <= '9' {
				value = min(10*value+int(c-'0'), 1000)
			} else { // sub-parameters
				value = 1000
			}
			continue
		}
		switch {
		case skip > 0:
			skip--
		case color && value == 5: // an index
			color, skip = false, 1
		case color && value == 2: // red, green and blue
			color, skip = false, 3
		case value == 0:
			before, color = false, false
		case value == 38, value == 48, value == 58:
			before, color = true, true
		case value >= 22 && value <= 29, value == 39, value == 49, value == 54, value == 55, value == 59: // one off
			color = false
		default:
			before, color = true, false
		}
		value = 0
	}
	return before
}

// observeWindow handles XTWINOPS, of which 22 and 23 push and pop the title.
func (m *Modes) observeWindow(parameters string) {
	switch operation, _, _ := strings.Cut(parameters, ";"); operation {
	case "22":
		m.titles = min(m.titles+1, maxTitles)
	case "23":
		m.titles = max(m.titles-1, 0)
	}
}

// maxTitles is the depth of xterm's title stack.
const maxTitles = 10

// observeCommand handles an OSC, given by its text and as a whole.
func (m *Modes) observeCommand(text string, sequence []byte) {
	number, values, _ := strings.Cut(text, ";")
	switch number {
	case "0", "2":
		if strings.HasPrefix(text, number+";") {
			m.title = bytes.Clone(sequence)
		}
	case "8":
		_, target, _ := strings.Cut(values, ";")
		m.link = target != ""
	case "4": // pairs of an index and a colour
		list := strings.Split(values, ";")
		for i := 0; i+1 < len(list); i += 2 {
			if index, err := strconv.ParseUint(list[i], 10, 8); err == nil && list[i+1] != "?" {
				m.setColor(fmt.Sprintf("104;%d", index))
			}
		}
	case "10", "11", "12", "13", "14", "17", "19": // a list of colours, for this number and the next ones
		first, _ := strconv.Atoi(number)
		for i, color := range strings.Split(values, ";") {
			if n := first + i; color != "?" && color != "" && n <= 19 {
				m.setColor(strconv.Itoa(100 + n))
			}
		}
	case "104":
		for _, index := range strings.Split(values, ";") {
			delete(m.colors, "104;"+index)
		}
		if values == "" {
			maps.DeleteFunc(m.colors, func(reset string, _ bool) bool { return strings.HasPrefix(reset, "104;") })
		}
	default:
		delete(m.colors, number)
	}
}

// setColor records a changed colour by the body of the OSC that resets it.
func (m *Modes) setColor(reset string) {
	if m.colors == nil {
		m.colors = make(map[string]bool)
	}
	m.colors[reset] = true
}

// screen returns 1 while the alternate screen is shown, else 0.
func (m *Modes) screen() int {
	for _, mode := range alternate {
		if m.private[mode] {
			return 1
		}
	}
	return 0
}

// observe handles CSI … u, whose first parameter byte says what it does.
func (k *keyboard) observe(verb byte, parameters string) {
	switch verb {
	case '>':
		k.pushed++
	case '<':
		k.pushed -= count(parameters)
		if k.pushed < 0 { // an empty stack resets the flags
			*k = keyboard{}
		}
	case '=':
		if k.pushed > 0 {
			return // a pop restores the flags below
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

// count is the value of a parameter whose default is 1.
func count(parameter string) int {
	n, err := strconv.Atoi(parameter)
	if err != nil || n < 1 {
		return 1
	}
	return n
}

// Title returns the sequence by which the program set the window's title last, or nil.
func (m *Modes) Title() []byte { return m.title }

// Undo returns the sequences that undo the program's changes, or nil if there are none:
// leave the alternate screen, then reset modes, scroll region, cursor, colours,
// character sets, keyboard, mouse and title stack. The cursor ends where it was when
// the alternate screen was entered or, after a program that drew on the main screen
// by rows, in the last row.
func (m *Modes) Undo() []byte {
	var b []byte
	reset := func(modes []int) {
		for _, mode := range modes {
			if on, changed := m.private[mode]; changed {
				final := 'h'
				if on {
					final = 'l'
				}
				b = fmt.Appendf(b, "\x1b[?%d%c", mode, final)
			}
		}
	}
	add := func(changed bool, undo string) {
		if changed {
			b = append(b, undo...)
		}
	}
	reset(synchronized)
	if m.screen() == 1 {
		b = m.keyboard[1].undo(b) // the terminal has flags for each screen
	}
	reset(alternate)
	add(m.insert, "\x1b[4l")
	reset(screenModes) // origin mode and margins move the cursor to the first row
	restored := m.private[1049] && !m.private[6] && !m.private[69]
	switch {
	case m.region && restored:
		b = append(b, "\x1b7\x1b[r\x1b8"...) // DECSTBM moves the cursor
	case m.region:
		b = append(b, "\x1b[r\x1b[999;1H"...)
	case !restored:
		add(m.screen() == 1 || m.private[6] || m.private[69], "\x1b[999;1H")
	}
	reset(cursorModes)
	add(m.shape, "\x1b[ q")
	add(m.pen || m.screen() == 1, "\x1b[m") // 1049 restores attributes too
	add(m.link, "\x1b]8;;\x1b\\")
	for _, color := range slices.Sorted(maps.Keys(m.colors)) {
		add(true, "\x1b]"+color+"\x1b\\")
	}
	add(m.charsets[0], "\x1b(B")
	add(m.charsets[1], "\x1b)B")
	add(m.charsets[0] || m.charsets[1], "\x0f")
	reset(keyModes)
	add(m.keypad, "\x1b>")
	add(m.modify, "\x1b[>4m")
	b = m.keyboard[0].undo(b)
	reset(inputModes)
	add(m.titles > 0, strings.Repeat("\x1b[23;0t", m.titles))
	return b
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
