// Package asciicast writes recordings of terminals in asciinema's file format asciicast v3, and reads that
// and v2. (The formats: https://docs.asciinema.org/manual/asciicast/v3/.)
//
// A recording is a file of lines. The first is a JSON object, the [Header]; each further line
// is a JSON array with a time, a code and a text, the [Event]. Version 3 has times since the
// event before, version 2 since the start; events here always have those since the start.
//
// The formats hold text. A [Writer] puts characters together that were cut between two writes,
// and stores U+FFFD for bytes that are not UTF-8. Every event is one line and one write, so a
// recording whose program was killed is readable up to its last line.
//
// A [Reader] takes any file: lines and times are bounded, events of unknown codes and further
// elements of an event are passed on or ignored as the formats ask. The package is pure: its
// caller owns files and clocks.
package asciicast

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Header describes a recording.
type Header struct {
	Version    int // 2 or 3; a Writer has version 3
	Cols, Rows int // of the terminal at the start
	Start      time.Time
	// IdleLimit bounds the pauses of a player, 0 if it does not.
	IdleLimit time.Duration
	Term      string // the terminal's type, as in TERM
	Title     string
	Command   string
}

// A Code says what an event is. A reader passes on codes that are not among these.
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
	At   time.Duration // since the start; never before the event before
	Code Code
	Data string
}

const (
	// maxSide bounds columns and rows, as the kernel's size of a terminal does.
	maxSide = 1<<16 - 1

	// maxTime bounds the length of a recording: what is longer is not a time.
	maxTime = 10 * 365 * 24 * time.Hour
)

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

// headerJSON is the first line of a recording of either version.
type headerJSON struct {
	Version   int               `json:"version"`
	Width     int               `json:"width,omitempty"`  // version 2
	Height    int               `json:"height,omitempty"` // version 2
	Term      *termJSON         `json:"term,omitempty"`   // version 3
	Timestamp int64             `json:"timestamp,omitempty"`
	IdleLimit float64           `json:"idle_time_limit,omitempty"`
	Command   string            `json:"command,omitempty"`
	Title     string            `json:"title,omitempty"`
	Env       map[string]string `json:"env,omitempty"`
}

type termJSON struct {
	Cols int    `json:"cols"`
	Rows int    `json:"rows"`
	Type string `json:"type,omitempty"`
}
