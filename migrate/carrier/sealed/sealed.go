// Package sealed makes a carrier that only the two ends who share a secret can read and
// write, whatever lies between them: a [Conn] encrypts and authenticates what another
// carrier moves, with AES-256-GCM.
//
// The stream is a sequence of records, each
//
//	length u16 | ciphertext (length bytes) | tag (16 bytes)
//
// of at most 4096 bytes; the length is authenticated too. A datagram is
//
//	counter u64 | ciphertext | tag (16 bytes)
//
// Each direction has its own key. A nonce is the lane, 0 for the stream and 1 for
// datagrams, as u32, then a u64: the number of the record from 0 on, or the datagram's
// counter. Nonces never repeat, because keys are for one carrier only.
//
// A record that does not open ends the carrier: records before it were whole and in order.
// A datagram that does not open is dropped. Repeated datagrams are not: carriers may
// repeat them anyway.
package sealed

import (
	"bufio"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"io"
	"sync"

	"github.com/quicterm/quicterm/migrate/carrier"
)

const (
	// KeySize is the size of a key, in bytes.
	KeySize = 32

	// maxRecord is how many bytes a record holds at most: few, because none of them is
	// delivered before the last one has arrived.
	maxRecord = 4096

	headerSize  = 2
	counterSize = 8
	tagSize     = 16

	// readSize is how many bytes are read from the stream at once: some records.
	readSize = 16 << 10
)

// ErrForged is the error of a stream with bytes that the other end did not write.
var ErrForged = errors.New("sealed: the bytes are not those that the other end wrote")

// A Conn is a sealed carrier.
type Conn struct {
	carrier.Carrier
	in     *bufio.Reader
	opened []byte // what is left of the record that was read last, in the reader's buffer

	// Each is for the goroutine that calls one of the methods.
	write, read, send, receive lane
	datagram                   [carrier.MaxDatagram]byte // to send
}

// A lane is one direction of a lane.
type lane struct {
	aead  cipher.AEAD
	next  uint64 // number of the next record or datagram
	nonce [12]byte
}

// numbered returns the nonce of a record or a datagram. It is valid until the next call.
func (l *lane) numbered(n uint64) []byte {
	binary.BigEndian.PutUint64(l.nonce[4:], n)
	return l.nonce[:]
}

// New returns a carrier over c, which it owns. A key of KeySize bytes seals what this end
// sends, another one what it receives. No other carrier may have the same keys. It panics if
// a key has another size.
func New(c carrier.Carrier, send, receive []byte) *Conn {
	out, in := newAEAD(send), newAEAD(receive)
	datagrams := [12]byte{3: 1}
	return &Conn{
		Carrier: c,
		in:      bufio.NewReaderSize(c, readSize),
		write:   lane{aead: out},
		read:    lane{aead: in},
		send:    lane{aead: out, nonce: datagrams},
		receive: lane{aead: in, nonce: datagrams},
	}
}

func newAEAD(key []byte) cipher.AEAD {
	if len(key) != KeySize {
		panic("sealed: key of a wrong size")
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // the size is right
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // AES has the block size that GCM needs
	}
	return aead
}

// writeBuffers are for records that are written together.
var writeBuffers = sync.Pool{New: func() any { return new([]byte) }}

// Write implements [carrier.Carrier].
func (c *Conn) Write(b []byte) (int, error) {
	buffer := writeBuffers.Get().(*[]byte)
	defer writeBuffers.Put(buffer)
	out := (*buffer)[:0]
	for rest := b; len(rest) > 0; c.write.next++ {
		part := rest[:min(len(rest), maxRecord)]
		rest = rest[len(part):]
		start := len(out)
		out = binary.BigEndian.AppendUint16(out, uint16(len(part)))
		out = c.write.aead.Seal(out, c.write.numbered(c.write.next), part, out[start:])
	}
	*buffer = out
	if _, err := c.Carrier.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Read implements [carrier.Carrier]. It opens all whole records that were read and fit into b.
func (c *Conn) Read(b []byte) (int, error) {
	n := copy(b, c.opened)
	c.opened = c.opened[n:]
	for len(c.opened) == 0 && (n == 0 || c.whole(len(b)-n)) {
		opened, err := c.readRecord(b[n:n:len(b)])
		if err != nil {
			return n, err
		}
		copied := copy(b[n:], opened) // nothing moves if it was opened there
		n += copied
		c.opened = opened[copied:]
	}
	return n, nil
}

// whole reports whether a whole record was read that has at most n bytes.
func (c *Conn) whole(n int) bool {
	if c.in.Buffered() < headerSize {
		return false
	}
	header, _ := c.in.Peek(headerSize)
	size := int(binary.BigEndian.Uint16(header))
	return size <= n && headerSize+size+tagSize <= c.in.Buffered()
}

// readRecord reads and opens the next record: into the capacity of out or, if it does not fit, in the reader's buffer.
func (c *Conn) readRecord(out []byte) ([]byte, error) {
	header, err := c.in.Peek(headerSize)
	if err != nil {
		return nil, cutOff(err, header)
	}
	n := int(binary.BigEndian.Uint16(header))
	if n > maxRecord {
		return nil, ErrForged
	}
	record, err := c.in.Peek(headerSize + n + tagSize)
	if err != nil {
		return nil, cutOff(err, record)
	}
	header, sealed := record[:headerSize], record[headerSize:]
	if n > cap(out) {
		out = sealed[:0]
	}
	opened, err := c.read.aead.Open(out, c.read.numbered(c.read.next), sealed, header)
	if err != nil {
		return nil, ErrForged
	}
	c.read.next++
	_, err = c.in.Discard(len(record)) // the buffer keeps the bytes until it reads more
	return opened, err
}

// cutOff returns the error for the end of the stream inside a record, of which some bytes
// may have been read.
func cutOff(err error, b []byte) error {
	if err == io.EOF && len(b) > 0 {
		return io.ErrUnexpectedEOF
	}
	return err
}

// SendDatagram implements [carrier.Carrier]. It drops datagrams that leave no room for the
// seal, and does not seal empty ones, which say nothing.
func (c *Conn) SendDatagram(b []byte) error {
	if len(b) == 0 {
		return c.Carrier.SendDatagram(b)
	}
	if len(b) > carrier.MaxDatagram-carrier.SealSize {
		return nil
	}
	n := c.send.next
	c.send.next++
	out := binary.BigEndian.AppendUint64(c.datagram[:0], n)
	return c.Carrier.SendDatagram(c.send.aead.Seal(out, c.send.numbered(n), b, nil))
}

// ReceiveDatagram implements [carrier.Carrier].
func (c *Conn) ReceiveDatagram() ([]byte, error) {
	for {
		b, err := c.Carrier.ReceiveDatagram()
		if err != nil {
			return nil, err
		}
		if len(b) < carrier.SealSize {
			continue
		}
		number, sealed := binary.BigEndian.Uint64(b), b[counterSize:]
		if opened, err := c.receive.aead.Open(sealed[:0], c.receive.numbered(number), sealed, nil); err == nil {
			return opened, nil
		}
	}
}
