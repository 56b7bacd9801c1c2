package utmp

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"strings"
	"time"
)

// The types of records that matter here.
const (
	userProcess = 7 // a login
	deadProcess = 8 // the end of one
)

// The lengths of texts in records, in bytes. A text that is as long has no zero byte behind it.
const lineSize, idSize, userSize, hostSize = 32, 4, 32, 256

// A layout is the form of the records on a processor: the size of numbers that the C library has made
// longer on some.
//
//	0 type i16 | 4 process i32 | 8 line | 40 id | 44 user | 76 host | 332 exit status 2 × i16
//	336 session, seconds, microseconds, each a word | address 16 bytes | 20 bytes and what aligns the record
//
// A record of lastlog is a time, as a word, line and host.
type layout struct{ word int }

// layouts has the processors that are known, all of which have the low byte first.
var layouts = map[string]layout{"amd64": {4}, "arm64": {8}}

// size returns the size of a record of utmp and wtmp, in bytes.
func (l layout) size() int { return (336 + 3*l.word + 16 + 20 + l.word - 1) / l.word * l.word }

// lastSize returns the size of a record of lastlog, in bytes.
func (l layout) lastSize() int { return l.word + lineSize + hostSize }

// begin returns the record of a login, and end the one that takes its place.
func (l layout) begin(login *Login, at time.Time) []byte {
	b := l.record(userProcess, login, at)
	copy(b[44:44+userSize], login.Account)
	if login.Client.IsValid() {
		client := login.Client.Unmap()
		copy(b[76:76+hostSize], client.WithZone("").String())
		copy(b[336+3*l.word:], client.AsSlice())
	}
	return b
}

func (l layout) end(login *Login, at time.Time) []byte { return l.record(deadProcess, login, at) }

func (l layout) record(kind uint16, login *Login, at time.Time) []byte {
	b := make([]byte, l.size())
	binary.LittleEndian.PutUint16(b, kind)
	binary.LittleEndian.PutUint32(b[4:], uint32(login.Process))
	copy(b[8:8+lineSize], lineOf(login.Terminal))
	copy(b[40:40+idSize], idOf(login.Terminal))
	l.put(b[336+l.word:], at.Unix())
	l.put(b[336+2*l.word:], int64(at.Nanosecond()/1000))
	return b
}

func (l layout) last(login *Login, at time.Time) []byte {
	b := make([]byte, l.lastSize())
	l.put(b, at.Unix())
	copy(b[l.word:], lineOf(login.Terminal))
	if login.Client.IsValid() {
		copy(b[l.word+lineSize:], login.Client.Unmap().WithZone("").String())
	}
	return b
}

func (l layout) put(b []byte, n int64) {
	if l.word == 4 {
		binary.LittleEndian.PutUint32(b, uint32(n))
	} else {
		binary.LittleEndian.PutUint64(b, uint64(n))
	}
}

// parse returns the login of a record, if it is one of ours and has not ended.
func parse(b []byte) (login Login, ok bool) {
	line, _, _ := bytes.Cut(b[8:8+lineSize], []byte{0})
	n, err := strconv.ParseUint(strings.TrimPrefix(string(line), "pts/"), 10, 32)
	login = Login{Terminal: uint32(n), Process: int(int32(binary.LittleEndian.Uint32(b[4:])))}
	ok = err == nil && binary.LittleEndian.Uint16(b) == userProcess && login.Process > 0 &&
		idOf(login.Terminal) != "" && string(line) == lineOf(login.Terminal) && sameID(b, idOf(login.Terminal))
	return login, ok
}

// sameID reports whether a record has an id, and is of a kind that has ids.
func sameID(b []byte, id string) bool {
	kind := binary.LittleEndian.Uint16(b)
	own := make([]byte, idSize)
	copy(own, id)
	return kind >= 5 && kind <= deadProcess && bytes.Equal(b[40:40+idSize], own)
}

func lineOf(terminal uint32) string { return "pts/" + strconv.FormatUint(uint64(terminal), 10) }

// idOf returns the id of the records of a terminal, which other programs do not use: they take the end of
// the terminal's name. It is empty for terminals whose number does not fit.
func idOf(terminal uint32) string {
	id := "q" + strconv.FormatUint(uint64(terminal), 36)
	if len(id) > idSize {
		return ""
	}
	return id
}
