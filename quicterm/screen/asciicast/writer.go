package asciicast

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"
	"unicode/utf8"
)

// maxText is how many bytes of text a Writer puts into an event: more is several events.
const maxText = 64 << 10

// A Writer writes a recording. It is not safe for concurrent use. Its methods return the error
// of the underlying writer; after one, all do.
type Writer struct {
	lines *json.Encoder // writes each line in one call
	start time.Time
	last  int64  // the time of the last event, in microseconds
	rest  []byte // the start of a character that continues in the next output
}

// NewWriter writes the header of a recording. The times of its events count from h.Start.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	if !validSide(h.Cols) || !validSide(h.Rows) {
		return nil, fmt.Errorf("asciicast: %s is not the size of a terminal", formatSize(h.Cols, h.Rows))
	}
	line := headerJSON{Version: 3, Term: termJSON{h.Cols, h.Rows, h.Term}, Title: h.Title}
	if !h.Start.IsZero() {
		line.Timestamp = h.Start.Unix()
	}
	lines := json.NewEncoder(w)
	lines.SetEscapeHTML(false)
	return &Writer{lines: lines, start: h.Start}, lines.Encode(line)
}

// Output records output of the program. A character of which only the start has come waits for the rest.
func (w *Writer) Output(at time.Time, b []byte) error {
	for len(b) > 0 {
		n := min(len(b), maxText)
		text := append(w.rest, b[:n]...)
		b = b[n:]
		whole := len(text) - incomplete(text)
		w.rest = append([]byte(nil), text[whole:]...)
		if whole == 0 {
			continue
		}
		if err := w.event(at, Output, string(text[:whole])); err != nil {
			return err
		}
	}
	return nil
}

// Resize records a new size of the terminal.
func (w *Writer) Resize(at time.Time, cols, rows int) error {
	if !validSide(cols) || !validSide(rows) {
		return nil // a program may set any: not one that shows something
	}
	return w.event(at, Resize, formatSize(cols, rows))
}

// Marker records a place that players can jump to.
func (w *Writer) Marker(at time.Time, label string) error { return w.event(at, Marker, label) }

// Exit records the exit status of the program, after the rest of its output. It is the last event.
func (w *Writer) Exit(at time.Time, status int) error {
	if err := w.Close(at); err != nil {
		return err
	}
	return w.event(at, Exit, strconv.Itoa(status))
}

// Close records the start of a character whose end has never come. It closes no file.
func (w *Writer) Close(at time.Time) error {
	if len(w.rest) == 0 {
		return nil
	}
	rest := string(w.rest)
	w.rest = nil
	return w.event(at, Output, rest)
}

// incomplete returns how many bytes at the end of b are the start of a character whose end may follow.
func incomplete(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if end := b[len(b)-n:]; utf8.RuneStart(end[0]) {
			if utf8.FullRune(end) {
				return 0
			}
			return n
		}
	}
	return 0
}

// event writes a line.
func (w *Writer) event(at time.Time, code Code, data string) error {
	now := max(at.Sub(w.start).Microseconds(), w.last)
	t := now - w.last
	w.last = now
	seconds := fmt.Sprintf("%d.%06d", t/1e6, t%1e6)
	return w.lines.Encode([3]any{json.Number(seconds), code, data})
}
