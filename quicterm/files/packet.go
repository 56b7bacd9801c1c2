package files

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
)

const (
	// MaxPacket bounds a packet, in bytes behind its length: as OpenSSH and pkg/sftp do.
	MaxPacket = 256 << 10

	// MaxPut bounds the content of a file in one request, in bytes: the path beside it has room in a packet.
	MaxPut = 128 << 10

	// MaxHash bounds the bytes that one request hashes, so that none takes the server long.
	MaxHash = 8 << 20
)

// The requests that this package adds to SFTP.
const (
	PutRequest  = "put@quicterm"
	GetRequest  = "get@quicterm"
	HashRequest = "hash@quicterm"
	HomeRequest = "home@quicterm"
)

// Types of packets, and codes of Status (draft-ietf-secsh-filexfer-02).
const (
	TypeStatus   = 101
	TypeExtended = 200
	TypeReply    = 201

	statusOK         = 0
	statusNoFile     = 2
	statusPermission = 3
	statusFailure    = 4
)

// headBytes are those of a packet with its length, its type, and the id of its request: no packet is shorter.
const headBytes = 4 + 1 + 4

var errMalformed = errors.New("malformed packet of SFTP")

// A Reader passes on the packets of a stream, except those that it takes. It is for one goroutine.
type Reader struct {
	in    *bufio.Reader
	wants func(kind byte, id uint32) bool
	take  func(packet []byte) bool
	rest  int    // bytes of a packet that are passed on as they come
	held  []byte // and of one that was read
}

// NewReader returns a reader of the packets of in. Of each packet that wants selects, take gets the bytes behind the
// length, which it owns, and reports whether that was for it.
func NewReader(in io.Reader, wants func(kind byte, id uint32) bool, take func(packet []byte) bool) *Reader {
	return &Reader{in: bufio.NewReaderSize(in, MaxPacket), wants: wants, take: take}
}

// Read implements [io.Reader].
func (r *Reader) Read(p []byte) (n int, err error) {
	for r.rest == 0 && len(r.held) == 0 {
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	if len(r.held) > 0 {
		n = copy(p, r.held)
		r.held = r.held[n:]
		return n, nil
	}
	n, err = r.in.Read(p[:min(len(p), r.rest)])
	r.rest -= n
	return n, err
}

// next begins with another packet.
func (r *Reader) next() error {
	head, err := r.in.Peek(headBytes)
	if err != nil {
		if err == io.EOF && len(head) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	length := binary.BigEndian.Uint32(head)
	if length < headBytes-4 || length > MaxPacket {
		return errMalformed
	}
	size := 4 + int(length)
	if !r.wants(head[4], binary.BigEndian.Uint32(head[5:])) {
		r.rest = size
		return nil
	}
	packet := make([]byte, size)
	if _, err := io.ReadFull(r.in, packet); err != nil {
		return io.ErrUnexpectedEOF
	}
	if !r.take(packet[4:]) {
		r.held = packet
	}
	return nil
}

// A Writer writes whole packets. One other writes them in pieces, by Write; all others by Send.
type Writer struct {
	piece []byte // of Write

	mu sync.Mutex
	w  io.Writer
}

// NewWriter returns a writer to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write implements [io.Writer]. What it takes is sent when a packet is whole.
func (w *Writer) Write(p []byte) (int, error) {
	w.piece = append(w.piece, p...)
	for len(w.piece) >= 4 {
		size := 4 + int(binary.BigEndian.Uint32(w.piece))
		if len(w.piece) < size {
			break
		}
		if err := w.send(w.piece[:size]); err != nil {
			return 0, err
		}
		w.piece = w.piece[:copy(w.piece, w.piece[size:])]
	}
	return len(p), nil
}

// Send sends a packet, whose first four bytes it fills in.
func (w *Writer) Send(packet []byte) error {
	binary.BigEndian.PutUint32(packet, uint32(len(packet)-4))
	return w.send(packet)
}

func (w *Writer) send(packet []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.w.Write(packet)
	return err
}

// Packet returns the start of a packet, with room for its length.
func Packet(kind byte, id uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{0, 0, 0, 0, kind}, id)
}

// AppendString appends a string of SFTP.
func AppendString(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}

// fields are those of a packet that are not read yet. bad means that there were too few bytes.
type fields struct {
	b   []byte
	bad bool
}

func (f *fields) bytes(n uint32) []byte {
	if uint64(n) > uint64(len(f.b)) {
		f.bad, n = true, 0
		return make([]byte, 8)
	}
	b := f.b[:n]
	f.b = f.b[n:]
	return b
}

func (f *fields) uint32() uint32 { return binary.BigEndian.Uint32(f.bytes(4)) }
func (f *fields) uint64() uint64 { return binary.BigEndian.Uint64(f.bytes(8)) }

func (f *fields) string() string {
	n := f.uint32()
	if b := f.bytes(n); !f.bad {
		return string(b)
	}
	return ""
}

// A Hash is that of the bytes of a file from an offset on.
type Hash struct {
	Size uint64 // bytes that there were, fewer than were asked for at the end of the file
	Sum  [sha256.Size]byte
}

// ParseStatus returns the error of a Status, the bytes behind the type and the id, or nil for success.
func ParseStatus(body []byte) error {
	f := fields{b: body}
	code, text := f.uint32(), f.string()
	switch {
	case f.bad:
		return errMalformed
	case code == statusOK:
		return nil
	}
	return &Error{Code: code, Text: text}
}

// ParseHash returns the answer to a HashRequest from the bytes behind the type and the id.
func ParseHash(body []byte) (h Hash, err error) {
	f := fields{b: body}
	h.Size = f.uint64()
	if copy(h.Sum[:], f.b); f.bad || len(f.b) != len(h.Sum) {
		return Hash{}, errMalformed
	}
	return h, nil
}

// An Error is one of the server.
type Error struct {
	Code uint32
	Text string
}

func (e *Error) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("error %d of the server", e.Code)
	}
	return e.Text
}
