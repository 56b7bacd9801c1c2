package bootstrap

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// linePrefix begins the line that `qtd grant` prints, and tells it from all else that a login prints.
const linePrefix = "quicterm-grant "

const (
	// maxLine bounds the length of that line in bytes, for a host key of 32768 bits.
	maxLine = 8 << 10

	// maxNoise bounds how many bytes a login may print before it: more than any motd.
	maxNoise = 1 << 20

	// maxShown is how many bytes of a line of a login a message has.
	maxShown = 200
)

// Line returns a grant as a line of text, without its end.
func Line(g *wire.Grant) (string, error) {
	b, err := json.Marshal(g)
	return linePrefix + string(b), err
}

// ReadLine returns the first grant in the output of a login. It keeps at most one line in memory.
func ReadLine(r io.Reader) (*wire.Grant, error) {
	text, _, err := find(bufio.NewReaderSize(r, maxLine), linePrefix)
	if err != nil {
		return nil, err
	}
	return parseGrant(text)
}

func parseGrant(text string) (*wire.Grant, error) {
	g := new(wire.Grant)
	if err := json.Unmarshal([]byte(text), g); err != nil {
		return nil, fmt.Errorf("grant: %w", err)
	}
	g.Software = wire.Printable(g.Software, wire.MaxSummary)
	g.Warning = wire.Printable(g.Warning, maxShown)
	return g, nil
}

// A noGrantError says that the output of a login has no line that was looked for.
type noGrantError struct {
	last string // the last line that is not empty, printable
	err  error  // of reading, nil at the end
}

func (e *noGrantError) Error() string {
	if e.err != nil {
		return "no grant was printed: " + e.err.Error()
	}
	return "no grant was printed"
}

func (e *noGrantError) Unwrap() error { return e.err }

// errNoise is the error of a login that prints more than a login does.
var errNoise = errors.New("the login prints without end")

// find returns what is behind the prefix in the first line that begins with one of some
// prefixes, and the prefix. It leaves what comes behind that line in the reader.
func find(lines *bufio.Reader, prefixes ...string) (text, prefix string, err error) {
	var missing noGrantError
	for noise := 0; ; {
		line, long, err := lines.ReadLine()
		text := strings.TrimSpace(string(line))
		for _, prefix := range prefixes {
			if rest, ok := strings.CutPrefix(text, prefix); ok {
				return rest, prefix, nil
			}
		}
		if noise += len(line) + 1; text != "" {
			missing.last = wire.Printable(text, maxShown)
		}
		for long && err == nil && noise <= maxNoise { // skip the rest of a line that is too long
			line, long, err = lines.ReadLine()
			noise += len(line)
		}
		switch {
		case errors.Is(err, io.EOF):
			return "", "", &missing
		case err == nil && noise > maxNoise:
			err = errNoise
		}
		if err != nil {
			missing.err = err
			return "", "", &missing
		}
	}
}
