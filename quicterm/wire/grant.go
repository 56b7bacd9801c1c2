package wire

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Grant is how a daemon answers a connection to its unix socket: how to reach
// it, and a ticket for the account at the other end of the socket.
type Grant struct {
	Address string `cbor:"1,keyasint" json:"address"`  // to dial from the same machine
	HostKey []byte `cbor:"2,keyasint" json:"host_key"` // RFC 4253, 6.6
	Ticket  []byte `cbor:"3,keyasint" json:"ticket"`
}

// grantPrefix begins the line by which a grant is told: whatever else a login
// prints is not taken for one.
const grantPrefix = "quicterm-grant "

// maxGrantLine is the longest such line, in bytes.
const maxGrantLine = 8 << 10

// Line returns the grant as a line of text, without its end.
func (g *Grant) Line() (string, error) {
	b, err := json.Marshal(g)
	return grantPrefix + string(b), err
}

// ReadGrant finds the line that tells a grant in what a login has printed.
func ReadGrant(r io.Reader) (*Grant, error) {
	lines := bufio.NewReaderSize(r, maxGrantLine)
	for {
		line, long, err := lines.ReadLine()
		text, ok := strings.CutPrefix(strings.TrimSpace(string(line)), grantPrefix)
		if ok {
			g := new(Grant)
			if err := json.Unmarshal([]byte(text), g); err != nil {
				return nil, fmt.Errorf("grant: %w", err)
			}
			return g, nil
		}
		for long && err == nil { // not one of ours: go on behind it
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
