package wire

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
)

// A Hint says what the kernel knows of a session's terminal at a place in its output. A client
// that predicts the echo of keys needs no guess where it has one.
type Hint struct {
	// Out is the last frame of the output that was read before the rest was looked up.
	Out uint64
	// In is the last frame of this client's input that the program had had for a while then, at
	// least 30 ms: its effects are in the output up to Out. 0 means none.
	In       uint64
	Terminal TerminalFlags
	// Context is a hash of the name of the process in the foreground, 0 if that is not known.
	Context uint16

	// What follows is told with HintsProgram only.

	// Reading says that the program in the foreground waits for input from the terminal, had read all
	// that it was given, and has printed nothing behind Out. It is false where the system does not tell.
	Reading bool
	// Taken is the last frame of this client's input that has left the terminal's queue, or 0.
	Taken uint64
}

// TerminalFlags are the modes of a terminal that decide how it shows keys.
type TerminalFlags uint8

// The flags, with the names of termios(3).
const (
	Canonical   TerminalFlags = 1 << iota // ICANON: the kernel edits lines
	Echo                                  // ECHO: the kernel echoes
	EchoErase                             // ECHOE: an erased character disappears
	EchoControl                           // ECHOCTL: control characters are shown as ^X
	Signals                               // ISIG: ^C and the like are signals
	Shell                                 // the session's own shell is in the foreground
	Extended                              // IEXTEN: word erase works
	UsualKeys                             // DEL erases a character, ^U a line and ^W a word, of UTF-8 (IUTF8)
)

// Secret reports whether a terminal reads a line that it does not show, such as a password.
func (f TerminalFlags) Secret() bool { return f&(Canonical|Echo) == Canonical }

// AtPrompt reports whether the session's own shell is in the foreground and waits for a command. Where the kernel edits
// lines, a shell that does so itself at its prompt is at something else, such as "read".
func (h Hint) AtPrompt() bool {
	return h.Reading && h.Terminal&Shell != 0 && (h.Terminal&Canonical == 0 || !editors[h.Context])
}

// editors are the shells that edit their lines themselves.
var editors = map[uint16]bool{
	ContextOf([]byte("bash")): true, ContextOf([]byte("zsh")): true, ContextOf([]byte("fish")): true,
}

// ContextOf returns the Context for the name of a process, which is not 0.
func ContextOf(name []byte) uint16 {
	h := fnv.New32a()
	h.Write(name)
	sum := h.Sum32()
	return max(uint16(sum>>16)^uint16(sum), 1)
}

// MaxHint is the size of the longest encoding of a hint.
const MaxHint = 4*binary.MaxVarintLen64 + 4

// hintReading is the flag of Reading, behind Context.
const hintReading = 1

var errNoHint = errors.New("not a hint")

// Append appends a hint to b as it stands behind an ack, with what only level tells: with its number, which grows
// with each change, and the received of that ack, which is above In and Taken.
func (h Hint) Append(b []byte, level uint8, number, received uint64) []byte {
	b = binary.AppendUvarint(b, number)
	b = binary.AppendUvarint(b, h.Out)
	b = binary.AppendUvarint(b, received-h.In)
	b = append(b, byte(h.Terminal))
	b = binary.BigEndian.AppendUint16(b, h.Context)
	if level < HintsProgram {
		return b
	}
	flags := flag(h.Reading, hintReading)
	return binary.AppendUvarint(append(b, flags), received-h.Taken)
}

// ParseHint is the inverse of Append. It ignores bytes behind the hint, and what only HintsProgram tells if that makes
// no sense.
func ParseHint(b []byte, received uint64) (h Hint, number uint64, err error) {
	var v [3]uint64
	for i := range v {
		n := 0
		if v[i], n = binary.Uvarint(b); n <= 0 {
			return Hint{}, 0, errNoHint
		}
		b = b[n:]
	}
	if len(b) < 3 || v[0] == 0 || v[2] == 0 || v[2] > received {
		return Hint{}, 0, errNoHint
	}
	h = Hint{
		Out:      v[1],
		In:       received - v[2],
		Terminal: TerminalFlags(b[0]),
		Context:  binary.BigEndian.Uint16(b[1:]),
	}
	if b = b[3:]; len(b) > 1 {
		if back, n := binary.Uvarint(b[1:]); n > 0 && back > 0 && back <= received {
			h.Reading, h.Taken = b[0]&hintReading != 0, received-back
		}
	}
	return h, v[0], nil
}
