package bootstrap

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// linePrefix begins the line that `qtd grant` prints, and tells it from all else that a login
// prints.
const linePrefix = "quicterm-grant "

// maxLine bounds the length of that line in bytes, for a host key of 32768 bits.
const maxLine = 8 << 10

// Line returns a grant as a line of text, without its end.
func Line(g *wire.Grant) (string, error) {
	b, err := json.Marshal(g)
	return linePrefix + string(b), err
}

// ReadLine returns the first grant in the output of a login. It keeps at most one line
// in memory.
func ReadLine(r io.Reader) (*wire.Grant, error) {
	lines := bufio.NewReaderSize(r, maxLine)
	for {
		line, long, err := lines.ReadLine()
		text, ok := strings.CutPrefix(strings.TrimSpace(string(line)), linePrefix)
		if ok {
			g := new(wire.Grant)
			if err := json.Unmarshal([]byte(text), g); err != nil {
				return nil, fmt.Errorf("grant: %w", err)
			}
			return g, nil
		}
		for long && err == nil { // skip the rest of a line that is too long
			_, long, err = lines.ReadLine()
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil, errors.New("no grant was printed")
		case err != nil:
			return nil, fmt.Errorf("no grant was printed: %w", err)
		}
	}
}

// openPrefix begins the line by which a client opens a carrier over standard streams.
const openPrefix = "quicterm-open "

// maxOpen bounds the length of that line in bytes: a Hello and the longest request, in base64.
const maxOpen = 1 << 20

// OpenLine returns the first bytes of a carrier's stream as a line, with its end.
func OpenLine(first []byte) []byte {
	line := base64.StdEncoding.AppendEncode([]byte(openPrefix), first)
	return append(line, '\n')
}

// ReadOpen reads the line of OpenLine. It returns the bytes in it, and a reader of what comes
// behind it.
func ReadOpen(r io.Reader) (first []byte, rest io.Reader, err error) {
	lines := bufio.NewReader(r)
	line, err := lines.ReadSlice(' ')
	if err != nil || string(line) != openPrefix {
		return nil, nil, errors.New("there is no client of quicterm on standard input")
	}
	line = nil
	for part, long := []byte(nil), true; long; {
		if part, long, err = lines.ReadLine(); err != nil {
			return nil, nil, fmt.Errorf("first line of the client: %w", err)
		}
		if line = append(line, part...); len(line) > maxOpen {
			return nil, nil, errors.New("first line of the client: too long")
		}
	}
	first, err = base64.StdEncoding.AppendDecode(nil, line)
	if err != nil {
		return nil, nil, fmt.Errorf("first line of the client: %w", err)
	}
	return first, lines, nil
}
