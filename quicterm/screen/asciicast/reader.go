package asciicast

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// maxLine bounds a line in bytes: a file may be anything. It is more than a maxText of
// characters that JSON writes with six bytes each, and than what asciinema writes at once.
const maxLine = 4 << 20

// A SyntaxError says where and why a file is not a recording.
type SyntaxError struct {
	Line   int
	Reason string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d %s", e.Line, e.Reason) }

// A CutError says that a recording ends within a line: its program was killed while writing
// it, or a copy is not complete. What was read before is good.
type CutError struct{ Line int }

func (e *CutError) Error() string { return fmt.Sprintf("the recording is cut off in line %d", e.Line) }

// A Reader reads a recording.
type Reader struct {
	in     *bufio.Reader
	header Header
	number int    // of the line that was read last
	line   []byte // that line
	last   time.Duration
}

// NewReader reads the header of a recording. Besides errors of r, it returns a *SyntaxError or
// a *CutError.
func NewReader(r io.Reader) (*Reader, error) {
	reader := &Reader{in: bufio.NewReaderSize(r, 64<<10)}
	whole, err := reader.next()
	if err == io.EOF {
		return nil, &SyntaxError{1, "is missing: the file is empty"}
	}
	if err != nil {
		return nil, err
	}
	var h headerJSON
	switch err := json.Unmarshal(reader.line, &h); {
	case err != nil && !whole && reader.isCut() && reader.line[0] == '{':
		return nil, &CutError{1}
	case err != nil:
		return nil, reader.fail("is not the header of an asciicast file")
	case h.Version != 2 && h.Version != 3:
		return nil, reader.fail(fmt.Sprintf("has version %d of asciicast: versions 2 and 3 are known", h.Version))
	case h.Version == 3 && h.Term == nil:
		return nil, reader.fail("has no terminal (term)")
	}
	reader.header = h.header()
	if !validSide(reader.header.Cols) || !validSide(reader.header.Rows) {
		return nil, reader.fail("has a size that no terminal has")
	}
	return reader, nil
}

// header returns the header that a line describes.
func (h *headerJSON) header() Header {
	header := Header{
		Version: h.Version,
		Cols:    h.Width,
		Rows:    h.Height,
		Command: h.Command,
		Title:   h.Title,
		Term:    h.Env["TERM"],
	}
	if h.Version == 3 {
		header.Cols, header.Rows, header.Term = h.Term.Cols, h.Term.Rows, h.Term.Type
	}
	// As asciinema's player does: files of automatic origin have no size.
	if header.Cols == 0 {
		header.Cols = 80
	}
	if header.Rows == 0 {
		header.Rows = 24
	}
	if h.Timestamp != 0 {
		header.Start = time.Unix(h.Timestamp, 0)
	}
	header.IdleLimit, _ = duration(h.IdleLimit)
	return header
}

// ReadAll returns all of a recording, or with an error what there is before that.
func ReadAll(r io.Reader) (Header, []Event, error) {
	reader, err := NewReader(r)
	if err != nil {
		return Header{}, nil, err
	}
	var events []Event
	for {
		e, err := reader.Next()
		if err == io.EOF {
			return reader.header, events, nil
		}
		if err != nil {
			return reader.header, events, err
		}
		events = append(events, e)
	}
}

// Header returns the header.
func (r *Reader) Header() Header { return r.header }

// Next returns the next event. At the end it returns io.EOF; if the file is cut off, a *CutError;
// for a line that is not an event, a *SyntaxError. After an error it is not to be called again.
func (r *Reader) Next() (Event, error) {
	for {
		whole, err := r.next()
		if err != nil {
			return Event{}, err
		}
		if line := bytes.TrimSpace(r.line); len(line) == 0 || line[0] == '#' { // a comment
			continue
		}
		e, reason := r.parse()
		if reason != "" && !whole && r.isCut() {
			return Event{}, &CutError{r.number}
		}
		if reason != "" {
			return Event{}, r.fail(reason)
		}
		return e, nil
	}
}

// parse returns the event in the line, or why it is none.
func (r *Reader) parse() (e Event, reason string) {
	const notEvent = "is not an event: [time, code, data]"
	var fields [3]json.RawMessage // further ones are ignored
	if json.Unmarshal(r.line, &fields) != nil {
		return e, notEvent
	}
	var seconds *float64
	var code, data *string
	for i, into := range []any{&seconds, &code, &data} {
		if json.Unmarshal(fields[i], into) != nil {
			return e, notEvent
		}
	}
	if seconds == nil || code == nil || data == nil {
		return e, notEvent
	}
	at, ok := duration(*seconds)
	if r.header.Version == 3 {
		at += r.last
	}
	if !ok || at > maxTime {
		return e, "has a time that is out of range"
	}
	r.last = max(at, r.last)
	return Event{At: r.last, Code: Code(*code), Data: *data}, ""
}

// duration returns a time in seconds, to the microsecond, and whether it is one.
func duration(seconds float64) (time.Duration, bool) {
	if !(seconds >= 0 && seconds <= maxTime.Seconds()) {
		return 0, false
	}
	return time.Duration(math.Round(seconds*1e6)) * time.Microsecond, true
}

// next reads a line, and reports whether it is whole: whether it has an end. It returns io.EOF
// if there is no further line.
func (r *Reader) next() (whole bool, err error) {
	r.line = r.line[:0]
	r.number++
	for {
		part, err := r.in.ReadSlice('\n')
		r.line = append(r.line, part...)
		if len(r.line) > maxLine {
			return false, r.fail(fmt.Sprintf("is longer than %d bytes", maxLine))
		}
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, io.EOF) && len(r.line) > 0:
			return false, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return false, err
		}
	}
}

// isCut reports whether the line, which has no end, was cut off.
func (r *Reader) isCut() bool { return !json.Valid(r.line) }

func (r *Reader) fail(reason string) error { return &SyntaxError{r.number, reason} }
