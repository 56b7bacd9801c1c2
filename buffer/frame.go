package buffer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

const (
	// MaxPayload is the largest payload of a frame, in bytes.
	MaxPayload = 64 << 10

	headerSize  = 8 + 1 + 3
	trailerSize = 4

	// Overhead is what a frame adds to its payload, in bytes.
	Overhead = headerSize + trailerSize
)

// Errors of [Parse] and [Reader.Next]. After any of them except ErrTruncated the
// position of the next frame is unknown.
var (
	// ErrTruncated means that the bytes end before the frame does.
	ErrTruncated = errors.New("frame truncated")
	// ErrTooLong means that a frame claims more than MaxPayload bytes.
	ErrTooLong = errors.New("frame longer than allowed")
	// ErrChecksum means that a frame's bytes were corrupted on the way, or have a short form that makes no sense.
	ErrChecksum = errors.New("frame checksum mismatch")
)

// castagnoli is the CRC-32C of RFC 3720. amd64 and arm64 have an instruction for it.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A Type says what a frame's payload is. This package gives it no meaning.
type Type uint8

// A Frame is one numbered piece of a log, or with Seq 0 a message beside it.
type Frame struct {
	Seq     uint64
	Type    Type
	Payload []byte
}

// AppendFrame appends the encoding of f to dst and returns the extended slice.
// It panics if the payload is longer than MaxPayload.
func AppendFrame(dst []byte, f Frame) []byte {
	if len(f.Payload) > MaxPayload {
		panic(fmt.Sprintf("buffer: frame of %d bytes", len(f.Payload)))
	}
	start := len(dst)
	dst = binary.BigEndian.AppendUint64(dst, f.Seq)
	dst = binary.BigEndian.AppendUint32(dst, uint32(f.Type)<<24|uint32(len(f.Payload)))
	dst = append(dst, f.Payload...)
	return binary.BigEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// Parse decodes the frame at the start of b and returns it with the size of its
// encoding. The payload is a slice of b.
func Parse(b []byte) (Frame, int, error) {
	size, err := encodedSize(b)
	if err != nil {
		return Frame{}, 0, err
	}
	if len(b) < size {
		return Frame{}, 0, ErrTruncated
	}
	body := b[: size-trailerSize : size-trailerSize]
	if crc32.Checksum(body, castagnoli) != binary.BigEndian.Uint32(b[size-trailerSize:]) {
		return Frame{}, 0, ErrChecksum
	}
	return Frame{
		Seq:     binary.BigEndian.Uint64(b),
		Type:    Type(b[8]),
		Payload: body[headerSize:],
	}, size, nil
}

// encodedSize returns the size of a frame's encoding, from its header.
func encodedSize(b []byte) (int, error) {
	if len(b) < headerSize {
		return 0, ErrTruncated
	}
	n := int(binary.BigEndian.Uint32(b[8:]) & 0xffffff)
	if n > MaxPayload {
		return 0, ErrTooLong
	}
	return Overhead + n, nil
}

const (
	minChunk = 4 << 10
	maxChunk = 256 << 10 // larger than the largest frame
)

// A Reader reads frames, of any form, from a byte stream. It reads ahead, and never overwrites
// bytes that it has returned, so a frame's payload stays valid.
type Reader struct {
	r     io.Reader
	codec ShortCodec
	chunk []byte // read and not yet returned; its spare capacity is read into
	size  int    // of the next chunk: adapts to how much arrives at once
}

// NewReader returns a Reader of the frames in r.
func NewReader(r io.Reader) *Reader { return &Reader{r: r, size: minChunk} }

// Next returns the next frame. It blocks while the underlying reader does. At
// the end of the stream it returns io.EOF, or ErrTruncated inside a frame.
func (r *Reader) Next() (Frame, error) {
	for {
		f, n, err := r.codec.Parse(r.chunk)
		if err == nil {
			r.chunk = r.chunk[n:]
			return f, nil
		}
		if err != ErrTruncated {
			return Frame{}, err
		}
		if err := r.fill(); err != nil {
			if err == io.EOF && len(r.chunk) > 0 {
				err = ErrTruncated
			}
			return Frame{}, err
		}
	}
}

// Ready reports whether Next would return at once.
func (r *Reader) Ready() bool {
	if isShort(r.chunk) {
		c := r.codec
		_, _, err := c.Parse(r.chunk)
		return err != ErrTruncated
	}
	size, err := encodedSize(r.chunk)
	return err != ErrTruncated && len(r.chunk) >= size
}

func (r *Reader) fill() error {
	if cap(r.chunk)-len(r.chunk) < r.minRead() {
		chunk := make([]byte, len(r.chunk), max(r.size, len(r.chunk)+r.minRead()))
		copy(chunk, r.chunk)
		r.chunk = chunk
	}
	n, err := r.r.Read(r.chunk[len(r.chunk):cap(r.chunk)])
	r.chunk = r.chunk[:len(r.chunk)+n]
	switch {
	case n > r.size/2:
		r.size = min(r.size*2, maxChunk)
	case n < r.size/8:
		r.size = max(r.size/2, minChunk)
	}
	if n > 0 {
		return nil // the next read returns the error again
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// minRead returns how many bytes the next read must have space for: the rest of the
// frame that has begun, or a few small frames.
func (r *Reader) minRead() int {
	const few = 512
	if isShort(r.chunk) {
		return few
	}
	size, _ := encodedSize(r.chunk)
	return max(size-len(r.chunk), few)
}
