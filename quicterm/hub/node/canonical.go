package node

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/quicterm/quicterm/quicterm/hub"
)

const (
	// maxProtocolLine bounds a line of NATS' protocol in bytes: the longest is INFO.
	maxProtocolLine = 16 << 10

	// maxSubject bounds a subject in bytes: the longest of ours has 160.
	maxSubject = 256

	// maxError bounds what a hub says of an error, in bytes.
	maxError = 512

	// writeTime is how long a write to the hub may take: with more, the connection is lost.
	writeTime = 15 * time.Second
)

var errProtocol = errors.New("the hub does not speak the protocol of NATS, or exceeds its limits")

// A canonical reads NATS' protocol from a hub and passes it on in one form, with bounded sizes: the parser of nats.go
// takes memory for what a server announces, and must not read what a hostile hub writes. It makes each line anew from
// what it has understood, so that both cannot understand it in different ways. It drops headers of messages, and the
// subject for answers. A message by which the server says that nobody listens becomes an empty one.
type canonical struct {
	net.Conn
	src *bufio.Reader

	line    []byte // to be read, before anything else
	payload int    // bytes of a message to be read
	ending  bool   // behind the payload comes the end of its line
}

func newCanonical(c net.Conn) *canonical {
	return &canonical{Conn: c, src: bufio.NewReaderSize(c, 2*hub.MaxData)}
}

// Read reads what nats.go is to see.
func (c *canonical) Read(b []byte) (n int, err error) {
	for n < len(b) {
		if n > 0 && !c.ready() {
			break
		}
		switch {
		case len(c.line) > 0:
			moved := copy(b[n:], c.line)
			c.line = c.line[moved:]
			n += moved
		case c.payload > 0:
			moved, err := c.src.Read(b[n:min(len(b), n+c.payload)])
			c.payload -= moved
			if n += moved; err != nil {
				return n, err
			}
		case c.ending:
			var end [2]byte
			if _, err := io.ReadFull(c.src, end[:]); err != nil {
				return n, err
			}
			if end != [2]byte{'\r', '\n'} {
				return n, errProtocol
			}
			c.ending, c.line = false, []byte("\r\n")
		default:
			if err := c.next(); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// ready reports whether the next step does not block.
func (c *canonical) ready() bool {
	switch {
	case len(c.line) > 0:
		return true
	case c.payload > 0:
		return c.src.Buffered() > 0
	case c.ending:
		return c.src.Buffered() >= 2
	}
	rest, _ := c.src.Peek(c.src.Buffered())
	return bytes.IndexByte(rest, '\n') >= 0
}

// next reads a line.
func (c *canonical) next() error {
	line, err := c.src.ReadSlice('\n')
	switch {
	case err == bufio.ErrBufferFull || len(line) > maxProtocolLine:
		return errProtocol
	case err != nil:
		return err
	}
	text, ok := strings.CutSuffix(string(line), "\r\n")
	if !ok {
		return errProtocol
	}
	operation, rest, _ := strings.Cut(text, " ")
	switch strings.ToUpper(operation) {
	case "MSG", "HMSG":
		return c.message(strings.Fields(rest), strings.EqualFold(operation, "HMSG"))
	case "INFO":
		return c.info(rest)
	case "-ERR":
		c.line = fmt.Appendf(nil, "-ERR %s\r\n", plain(rest))
	case "PING", "PONG", "+OK":
		c.line = []byte(strings.ToUpper(operation) + "\r\n")
	default:
		return errProtocol
	}
	return nil
}

// message takes the arguments of a message: subject, subscription, perhaps a subject for answers, the length of the
// header if it has one, and the length with the header.
func (c *canonical) message(args []string, header bool) error {
	sizes := 1
	if header {
		sizes = 2
	}
	if len(args) != 2+sizes && len(args) != 3+sizes {
		return errProtocol
	}
	subject := args[0]
	subscription, err := strconv.ParseUint(args[1], 10, 31)
	if err != nil || len(subject) > maxSubject || plain(subject) != subject {
		return errProtocol
	}
	size, err := strconv.ParseUint(args[len(args)-1], 10, 31)
	if err != nil || size > hub.MaxMessage {
		return errProtocol
	}
	if header {
		skip, err := strconv.ParseUint(args[len(args)-2], 10, 31)
		if err != nil || skip > size {
			return errProtocol
		}
		if _, err := c.src.Discard(int(skip)); err != nil {
			return err
		}
		size -= skip
	}
	c.line = fmt.Appendf(nil, "MSG %s %d %d\r\n", subject, subscription, size)
	c.payload, c.ending = int(size), true
	return nil
}

// info takes what the server says of itself: of all that, the nonce counts alone.
func (c *canonical) info(text string) error {
	var said struct {
		Nonce string `json:"nonce"`
	}
	if err := json.Unmarshal([]byte(text), &said); err != nil || len(said.Nonce) > maxSubject || plain(said.Nonce) != said.Nonce {
		return errProtocol
	}
	info, err := json.Marshal(map[string]any{
		"server_id": "hub", "proto": 1, "headers": true, "auth_required": true, "max_payload": hub.MaxMessage, "nonce": said.Nonce,
	})
	if err != nil {
		return err
	}
	c.line = fmt.Appendf(nil, "INFO %s\r\n", info)
	return nil
}

// Write writes for nats.go, within writeTime.
func (c *canonical) Write(b []byte) (int, error) {
	if err := c.Conn.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// SetWriteDeadline does nothing: Write has its own.
func (c *canonical) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline sets the deadline of reads.
func (c *canonical) SetDeadline(t time.Time) error { return c.Conn.SetReadDeadline(t) }

// plain returns what a hub says without what controls a terminal, and not longer than maxError.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text[:min(len(text), maxError)])
}
