package wire

import (
	"encoding/binary"
	"errors"
	"time"
)

// An EntryID names an [Entry], at random or as its sender likes.
type EntryID [16]byte

// MaxEntry bounds the text and the keys of an [Entry], in bytes.
const MaxEntry = 48 << 10

// An Entry is what a program types. The holder types it when no other client's is being typed, as the terminal takes it
// then, and once: one whose ID it knows it does not type again. It answers with an [Entered].
type Entry struct {
	ID     EntryID
	Run    bool          // a command line, for the session's shell at its prompt
	Wait   bool          // with Run: wait for the prompt
	Secret bool          // only for a program that reads a line that it does not show
	Enter  bool          // press Enter at the end
	Within time.Duration // in which it is to be typed and read, in milliseconds; 0 is as long as the client is there
	Text   []byte        // a paste, if the program takes one; \r is Enter
	Keys   []byte        // typed then
}

// The flags of an encoded Entry.
const (
	entryRun = 1 << iota
	entryWait
	entrySecret
	entryEnter
)

// flag returns bit if it is set.
func flag(set bool, bit byte) byte {
	if set {
		return bit
	}
	return 0
}

// secretSize is a size of which an Entry with a secret has a multiple: the wire does not show how long that is.
const secretSize = 256

// Append appends the payload of an Entry frame to b.
func (e *Entry) Append(b []byte) []byte {
	begin := len(b)
	b = append(b, e.ID[:]...)
	b = append(b, flag(e.Run, entryRun)|flag(e.Wait, entryWait)|flag(e.Secret, entrySecret)|flag(e.Enter, entryEnter))
	b = binary.BigEndian.AppendUint32(b, uint32(max(e.Within.Milliseconds(), 0)))
	for _, part := range [][]byte{e.Text, e.Keys} {
		b = append(binary.AppendUvarint(b, uint64(len(part))), part...)
	}
	for e.Secret && (len(b)-begin)%secretSize != 0 {
		b = append(b, 0)
	}
	return b
}

var errNoEntry = errors.New("not an entry")

// ParseEntry is the inverse of Append. Text and Keys are parts of b. Bytes behind the entry are ignored.
func ParseEntry(b []byte) (e Entry, err error) {
	const fixed = 16 + 1 + 4
	if len(b) < fixed {
		return e, errNoEntry
	}
	flags := b[copy(e.ID[:], b)]
	e.Run, e.Wait = flags&entryRun != 0, flags&entryWait != 0
	e.Secret, e.Enter = flags&entrySecret != 0, flags&entryEnter != 0
	e.Within = time.Duration(binary.BigEndian.Uint32(b[fixed-4:])) * time.Millisecond
	b = b[fixed:]
	for _, part := range []*[]byte{&e.Text, &e.Keys} {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			return Entry{}, errNoEntry
		}
		b = b[size:]
		*part, b = b[:n:n], b[n:]
	}
	if len(e.Text)+len(e.Keys) > MaxEntry {
		return Entry{}, errNoEntry
	}
	return e, nil
}

// An Outcome is what has come of an [Entry].
type Outcome uint8

// The outcomes. With all but the first, nothing was typed.
const (
	Typed      Outcome = 0
	ShellBusy  Outcome = 1 // the session's shell is at work
	OtherReads Outcome = 2 // another program is in the foreground, and reads
	OtherBusy  Outcome = 3 // another program is in the foreground
	NotSecret  Outcome = 4 // the program would have shown the secret
	LongLine   Outcome = 5 // a line is longer than the terminal takes
	NoPaste    Outcome = 6 // the command has several lines, and the shell takes no paste
)

// An Entered answers an [Entry], in the log of the output before all that comes of it.
type Entered struct {
	Client  uint64 // its number in the session
	Frame   uint64 // of the client's log, that has the entry
	Outcome Outcome
	Again   bool   // an entry with this ID was typed before: this is what came of it
	Marked  bool   // with Run: the line that is typed has marks of its own around its output
	Offset  uint64 // of the output when it was typed
	Bytes   uint32 // that are typed; 0 with a secret
	After   string // whose entry it has waited for, as account@address
}

// The flags of an encoded Entered.
const (
	enteredAgain = 1 << iota
	enteredMarked
)

// Append appends the payload of an Entered frame to b.
func (e Entered) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, e.Client), e.Frame)
	b = append(b, byte(e.Outcome), flag(e.Again, enteredAgain)|flag(e.Marked, enteredMarked))
	b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(b, e.Offset), e.Bytes)
	return append(b, e.After[:min(len(e.After), MaxClient)]...)
}

// ParseEntered is the inverse of Append. After is [Printable].
func ParseEntered(b []byte) (e Entered, err error) {
	const fixed = 8 + 8 + 1 + 1 + 8 + 4
	if len(b) < fixed {
		return e, errors.New("answer to an entry truncated")
	}
	return Entered{
		Client: binary.BigEndian.Uint64(b), Frame: binary.BigEndian.Uint64(b[8:]), Outcome: Outcome(b[16]),
		Again: b[17]&enteredAgain != 0, Marked: b[17]&enteredMarked != 0,
		Offset: binary.BigEndian.Uint64(b[18:]), Bytes: binary.BigEndian.Uint32(b[26:]),
		After: Printable(string(b[fixed:]), MaxClient),
	}, nil
}

// A Typist names a client that has typed, the first time after an [Entry].
type Typist struct {
	Client uint64 `cbor:"1,keyasint"`               // its number in the session
	Name   string `cbor:"2,keyasint" text:"client"` // account@address
}

// Append appends the payload of a Typist frame to b.
func (t Typist) Append(b []byte) []byte {
	return append(binary.BigEndian.AppendUint64(b, t.Client), t.Name[:min(len(t.Name), MaxClient)]...)
}

// ParseTypist is the inverse of Append. The name is [Printable].
func ParseTypist(b []byte) (t Typist, err error) {
	if len(b) < 8 {
		return t, errors.New("name of a client that has typed truncated")
	}
	return Typist{binary.BigEndian.Uint64(b), Printable(string(b[8:]), MaxClient)}, nil
}
