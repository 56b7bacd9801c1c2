package typing

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// fish is the shell that is not like the others.
var fish = wire.ContextOf([]byte("fish"))

// paste returns text as a terminal sends it: as a paste, if the program knows the end of one. An end within the text is
// removed.
func paste(text []byte, pastes bool) []byte {
	if len(text) == 0 || !pastes {
		return bytes.Clone(text)
	}
	begin, end := []byte("\x1b[200~"), []byte("\x1b[201~")
	for bytes.Contains(text, end) {
		text = bytes.ReplaceAll(text, end, nil)
	}
	return slices.Concat(begin, text, end)
}

// marked returns a command line for a shell that runs a line and prints marks with its id around its output.
func marked(line []byte, id wire.EntryID, shell uint16) []byte {
	status, escaped := "$?", bytes.ReplaceAll(line, []byte("'"), []byte(`'\''`))
	if shell == fish {
		status = "$status"
		escaped = bytes.ReplaceAll(bytes.ReplaceAll(line, []byte(`\`), []byte(`\\`)), []byte("'"), []byte(`\'`))
	}
	return fmt.Appendf(nil, ` printf '\033]8133;C;%x\007'; eval '%s'; printf '\033]8133;D;%%s;%[1]x\007' "%[3]s"`,
		id[:], escaped, status)
}

// Plain reports whether input is keys that start no program.
func Plain(b []byte) bool {
	return !bytes.ContainsFunc(b, func(r rune) bool { return r < ' ' })
}

// Enters reports whether input ends a line or may stop a program.
func Enters(b []byte) bool { return bytes.ContainsAny(b, "\r\n\x03\x04\x1a") }
