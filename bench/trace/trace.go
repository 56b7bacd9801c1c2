// Package trace replays recordings of people's typing in virtual time, and measures how well a
// Policy foresees what the keys do.
//
// A trace is a recording in asciinema's format with the program's output, the input, and the
// hints of the server (package wire): what each key did is in it. A replay gives the same events
// to a policy as a client has them over a network with a round trip, jitter and loss. It sleeps
// never, and draws chance from a seed. README.md of package bench defines what is measured.
package trace

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/quicterm/quicterm/quicterm/screen/asciicast"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Hint is the code of an event with a hint, which ParseHint reads.
const Hint asciicast.Code = "h"

// Labels of markers: the keys between the two are a secret.
const (
	SecretBegins = "secret"
	SecretEnds   = "open"
)

// A Trace is a recording.
type Trace struct {
	Name       string
	Cols, Rows int
	Events     []asciicast.Event
}

// Open reads a trace.
func Open(file string) (*Trace, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := Read(f, strings.TrimSuffix(filepath.Base(file), ".cast"))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return t, nil
}

// Read reads a trace.
func Read(r io.Reader, name string) (*Trace, error) {
	header, events, err := asciicast.ReadAll(r)
	if err != nil {
		return nil, err
	}
	t := &Trace{Name: name, Cols: header.Cols, Rows: header.Rows, Events: events}
	for n, e := range events {
		switch e.Code {
		case Hint:
			_, err = ParseHint(e.Data)
		case asciicast.Resize:
			if _, _, ok := asciicast.ParseSize(e.Data); !ok {
				err = fmt.Errorf("%q is not a size", e.Data)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("event %d after %v: %w", n+1, e.At.Round(time.Millisecond), err)
		}
	}
	return t, nil
}

// ParseHint reads the text of a hint: the number of the last input that the program had had
// for a while, the terminal's flags and the context, the latter two in hexadecimal. Which output
// the hint is about, its place among the events says.
func ParseHint(text string) (h wire.Hint, err error) {
	if _, err := fmt.Sscanf(text, "%d %x %x", &h.In, (*uint8)(&h.Terminal), &h.Context); err != nil {
		return wire.Hint{}, fmt.Errorf("%q is not a hint: %w", text, err)
	}
	return h, nil
}
