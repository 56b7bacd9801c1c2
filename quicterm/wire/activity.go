package wire

import (
	"fmt"
	"strconv"
	"strings"
)

// Activity is what a session on a terminal does: what runs in its foreground, by the server's kernel, and what its
// shell has told of its last command. All of that is what the account's programs say of themselves.
type Activity struct {
	Program string `cbor:"1,keyasint" text:"name"` // name of the first process in the foreground, if it is known
	Waits   Waits  `cbor:"2,keyasint"`
	// since when it waits for that: something was typed or printed then. If it waits for nothing or that is not known,
	// when the process was started. Unix seconds, 0 if that is not known
	Since int64 `cbor:"3,keyasint"`

	// In Attached alone:

	Dir  string `cbor:"4,keyasint,omitempty" text:"dir"` // working directory of the program, if it is known
	Last *Ended `cbor:"5,keyasint,omitempty"`            // the command that has ended last
}

// Waits is what the program in the foreground of a terminal waits for.
type Waits uint8

// The values of Waits. Receivers take others for WaitsUnknown.
const (
	WaitsUnknown Waits = 0 // the system does not tell
	WaitsNothing Waits = 1
	WaitsPrompt  Waits = 2 // for a command: it is the session's own shell
	WaitsInput   Waits = 3 // for other input
)

// String returns a word for people and programs, which is empty if nothing is known.
func (w Waits) String() string {
	switch w {
	case WaitsNothing:
		return "nothing"
	case WaitsPrompt:
		return "prompt"
	case WaitsInput:
		return "input"
	}
	return ""
}

// An Ended is a command that a shell has run and told of by its marks, as the text of NoticeEnded too.
type Ended struct {
	Command string `cbor:"1,keyasint" text:"summary"` // as it was typed; may be empty
	Status  int64  `cbor:"2,keyasint"`                // exit status; -1 if it is not known
	At      int64  `cbor:"3,keyasint"`                // when it has ended, Unix seconds
}

// maxNoted bounds the command in the text of a notice, which has 256 bytes.
const maxNoted = 210

// String returns the text of a notice, with as much of the command as fits.
func (e Ended) String() string {
	return fmt.Sprintf("%d %d %s", e.At, e.Status, Printable(e.Command, maxNoted))
}

// ParseEnded is the inverse of String. The command is [Printable].
func ParseEnded(text string) (e Ended, err error) {
	at, rest, _ := strings.Cut(text, " ")
	status, command, found := strings.Cut(rest, " ")
	if !found {
		return e, fmt.Errorf("no command that has ended: %q", text)
	}
	if e.At, err = strconv.ParseInt(at, 10, 64); err != nil {
		return e, err
	}
	n, err := strconv.ParseInt(status, 10, 16)
	e.Status, e.Command = n, Printable(command, MaxSummary)
	return e, err
}
