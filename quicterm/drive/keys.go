package drive

import (
	"fmt"
	"strings"
)

// Keys that have names, as a terminal in its usual mode sends them.
var namedKeys = map[string]string{
	"Enter": "\r", "Tab": "\t", "Escape": "\x1b", "Space": " ", "Backspace": "\x7f", "Delete": "\x1b[3~",
	"Up": "\x1b[A", "Down": "\x1b[B", "Right": "\x1b[C", "Left": "\x1b[D", "Home": "\x1b[H", "End": "\x1b[F",
	"PageUp": "\x1b[5~", "PageDown": "\x1b[6~", "Insert": "\x1b[2~",
	"F1": "\x1bOP", "F2": "\x1bOQ", "F3": "\x1bOR", "F4": "\x1bOS", "F5": "\x1b[15~", "F6": "\x1b[17~",
	"F7": "\x1b[18~", "F8": "\x1b[19~", "F9": "\x1b[20~", "F10": "\x1b[21~", "F11": "\x1b[23~", "F12": "\x1b[24~",
}

// keyBytes returns what keys send: C-x is control, M-x is Alt, other names are those of namedKeys or one character.
func keyBytes(keys []string) (b []byte, err error) {
	for _, key := range keys {
		name := key
		if rest, ok := strings.CutPrefix(name, "M-"); ok {
			b, name = append(b, 0x1b), rest
		}
		control, ok := strings.CutPrefix(name, "C-")
		switch {
		case ok && len(control) == 1 && (control[0] >= '@' && control[0] <= '_' || control[0] >= 'a' && control[0] <= 'z'):
			b = append(b, control[0]&0x1f)
		case ok && control == "Space":
			b = append(b, 0)
		case namedKeys[name] != "":
			b = append(b, namedKeys[name]...)
		case len([]rune(name)) == 1:
			b = append(b, name...)
		default:
			return nil, fmt.Errorf("no key is named %q: use one character, C-c, M-x, Enter, Tab, Escape, Up, F1 and the like", key)
		}
	}
	return b, nil
}
