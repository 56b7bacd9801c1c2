// Package asciicast writes recordings of terminals in asciinema's file format asciicast v3, and reads those that
// it has written. (The format: https://docs.asciinema.org/manual/asciicast/v3/.)
//
// A recording is a file of lines. The first is a JSON object, the [Header]; each further line
// is a JSON array with the time since the line before, a code and a text, the [Event].
//
// The format holds text. A [Writer] puts characters together that were cut between two writes,
// and stores U+FFFD for bytes that are not UTF-8. Every event is one line and one write, so a
// recording whose program was killed is readable up to its last line.
//
// The package is pure: its caller owns files and clocks.
package asciicast

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// A Header describes a recording.
type Header struct {
	Cols, Rows int // of the terminal at the start
	Start      time.Time
	Term       string // the terminal's type, as in TERM
	Title      string
}

// A Code says what an event is. ReadAll passes on codes that are not among these.
type Code string

const (
	Output Code = "o" // the program's output
	Input  Code = "i" // what was typed
	Resize Code = "r" // the terminal's new size: see ParseSize
	Marker Code = "m" // a place to jump to, with a label
	Exit   Code = "x" // the program's exit status, as a number
)

// An Event is something that happened on the terminal.
type Event struct {
	At   time.Duration // since the start
	Code Code
	Data string
}

// maxSide bounds columns and rows, as the kernel's size of a terminal does.
const maxSide = 1<<16 - 1

// ParseSize returns the size in a Resize event, and whether it is one.
func ParseSize(data string) (cols, rows int, ok bool) {
	c, r, _ := strings.Cut(data, "x")
	cols, errCols := strconv.Atoi(c)
	rows, errRows := strconv.Atoi(r)
	ok = errCols == nil && errRows == nil && validSide(cols) && validSide(rows)
	return cols, rows, ok
}

func formatSize(cols, rows int) string { return fmt.Sprintf("%dx%d", cols, rows) }

func validSide(n int) bool { return n > 0 && n <= maxSide }

// headerJSON is the first line of a recording.
type headerJSON struct {
	Version   int      `json:"version"`
	Term      termJSON `json:"term"`
	Timestamp int64    `json:"timestamp,omitempty"`
	Title     string   `json:"title,omitempty"`
}

type termJSON struct {
	Cols int    `json:"cols"`
	Rows int    `json:"rows"`
	Type string `json:"type,omitempty"`
}

var errNotRecording = errors.New("not an asciicast file of version 3")

// ReadAll returns all of a recording, or with an error what there is before that.
func ReadAll(r io.Reader) (Header, []Event, error) {
	lines := json.NewDecoder(r)
	var h headerJSON
	if err := lines.Decode(&h); err != nil || h.Version != 3 {
		return Header{}, nil, errors.Join(errNotRecording, err)
	}
	header := Header{Cols: h.Term.Cols, Rows: h.Term.Rows, Term: h.Term.Type, Title: h.Title}
	if h.Timestamp != 0 {
		header.Start = time.Unix(h.Timestamp, 0)
	}
	var events []Event
	var at time.Duration
	for {
		var line [3]any
		err := lines.Decode(&line)
		if err == io.EOF {
			return header, events, nil
		}
		seconds, isTime := line[0].(float64)
		code, isCode := line[1].(string)
		data, isText := line[2].(string)
		if err == nil && !(isTime && isCode && isText) {
			err = errors.New("it must be [time, code, text]")
		}
		if err != nil {
			return header, events, fmt.Errorf("event %d: %w", len(events)+1, err)
		}
		at += time.Duration(math.Round(seconds*1e6)) * time.Microsecond
		events = append(events, Event{at, Code(code), data})
	}
}
