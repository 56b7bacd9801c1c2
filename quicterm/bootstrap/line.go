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
