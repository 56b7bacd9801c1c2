package wire

import (
	"fmt"
	"reflect"
)

// Lost is what a lost session has left: the record of its holder, and what a client gets of that. The session's program
// may have chosen any text and the screen.
type Lost struct {
	Name    string   `cbor:"1,keyasint" text:"name"`
	Scope   string   `cbor:"2,keyasint,omitempty"`      // not for clients
	Summary string   `cbor:"3,keyasint" text:"summary"` // the start of the command, for people
	Command string   `cbor:"4,keyasint"`                // the whole command; empty for the login shell
	Dir     string   `cbor:"5,keyasint" text:"error"`   // working directory of the program in the foreground
	Size    Size     `cbor:"6,keyasint"`                // of the terminal
	Created int64    `cbor:"7,keyasint"`                // Unix seconds
	Boot    BootMark `cbor:"8,keyasint"`                // not for clients
	Exited  bool     `cbor:"9,keyasint"`                // the program has ended, and no client has seen that
	Status  uint8    `cbor:"10,keyasint"`
	Reason  string   `cbor:"11,keyasint" text:"summary"` // why the program was ended, or empty
	Screen  []byte   `cbor:"12,keyasint"`                // output that shows screen and scrollback at Size

	// For clients alone.
	Seen     int64 `cbor:"13,keyasint,omitempty"` // when the record was written, Unix seconds
	Rebooted bool  `cbor:"14,keyasint,omitempty"` // the machine was started anew since; else the holder was killed
}

// EncodeLost encodes a record.
func EncodeLost(l *Lost) ([]byte, error) { return encMode.Marshal(l) }

// DecodeLost decodes a record. All texts but Command are made printable.
func DecodeLost(b []byte) (*Lost, error) {
	l := new(Lost)
	if err := decMode.Unmarshal(b, l); err != nil {
		return nil, err
	}
	if !ValidName(l.Name) {
		return nil, fmt.Errorf("a record with the name %q", Printable(l.Name, MaxName))
	}
	makePrintable(reflect.ValueOf(l))
	return l, nil
}

// LostError returns the answer to an Attach to a lost session.
func LostError(l *Lost) *Error {
	text := fmt.Sprintf("session %q was lost: qt attach shows it, qt kill removes what is left of it", l.Name)
	return &Error{Code: CodeLost, Text: text, Lost: l}
}
