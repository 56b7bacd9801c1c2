package driver

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/quicterm/session"
)

// The payload of a Compressed frame is
//
//	flags u8 | length u24 | zstd (RFC 8878)
//
// where length is that of the whole frames that the zstd bytes hold. The bytes continue
// the zstd stream of the last such frame, so repeated text costs little.
const (
	flagBegins = 1 << 0 // a new zstd stream begins
	flagEnds   = 1 << 1 // the stream ends: both ends free its memory

	packedHeader = 4
)

const (
	// zstdWindow is how far back compressed bytes may refer.
	zstdWindow = 256 << 10

	// maxPacked is how many bytes of frames a Compressed frame holds at most.
	maxPacked = 2 * buffer.MaxPayload
)

// ErrCompressed means that a compressed frame is malformed.
var ErrCompressed = errors.New("bad compressed frame")

// A packer makes compressed frames. Its zero value is ready; a stream takes some 800 KB of memory.
type packer struct {
	zstd      encoder // nil before the first stream and after its end
	continues bool    // the receiver has all of the stream so far
	usedAt    time.Time
	payload   payload
	frame     []byte
}

// An encoder is a *zstd.Encoder.
type encoder interface {
	io.Writer
	Flush() error
	Reset(io.Writer)
}

// A payload is a slice that can be written to.
type payload []byte

func (p *payload) Write(b []byte) (int, error) {
	*p = append(*p, b...)
	return len(b), nil
}

// pack returns a compressed frame that holds the given whole frames, valid until the
// next call, or false if it would not be shorter. The caller must send it.
func (p *packer) pack(now time.Time, frames []byte) (frame []byte, ok bool) {
	if len(frames) > maxPacked {
		return nil, false
	}
	if p.zstd == nil {
		if p.zstd = newEncoder(); p.zstd == nil {
			return nil, false
		}
	}
	p.usedAt = now
	flags := uint32(0)
	if !p.continues {
		flags = flagBegins
		p.zstd.Reset(&p.payload)
	}
	p.payload = binary.BigEndian.AppendUint32(p.payload[:0], flags<<24|uint32(len(frames)))
	_, err := p.zstd.Write(frames)
	if err == nil {
		err = p.zstd.Flush()
	}
	p.continues = err == nil && len(p.payload) <= buffer.MaxPayload && len(p.payload)+buffer.Overhead < len(frames)
	if !p.continues {
		return nil, false
	}
	p.frame = buffer.AppendFrame(p.frame[:0], buffer.Frame{Type: session.Compressed, Payload: p.payload})
	return p.frame, true
}

// end frees the stream's memory. It returns a frame that makes the receiver do the same,
// or nil if there is no stream.
func (p *packer) end() []byte {
	begun := p.zstd != nil
	*p = packer{}
	if !begun {
		return nil
	}
	return buffer.AppendFrame(nil, buffer.Frame{Type: session.Compressed, Payload: []byte{flagEnds, 0, 0, 0}})
}

// An unpacker decompresses frames. Its zero value is ready; a stream takes some 800 KB of memory, whatever its input.
type unpacker struct {
	zstd *zstd.Decoder // nil if no stream has begun
	rest []byte        // of the payload, not yet decompressed
}

// unpack returns the frames that the payload of a Compressed frame holds, encoded,
// in new memory. After an error, the stream cannot be decompressed any more.
func (u *unpacker) unpack(payload []byte) ([]byte, error) {
	if len(payload) < packedHeader {
		return nil, fmt.Errorf("%w: cut off", ErrCompressed)
	}
	flags, length := payload[0], int(binary.BigEndian.Uint32(payload)&0xffffff)
	if length > maxPacked {
		return nil, fmt.Errorf("%w: holds %d bytes", ErrCompressed, length)
	}
	frames, err := u.expand(payload[packedHeader:], flags&flagBegins != 0, length)
	if flags&flagEnds != 0 {
		u.free()
	}
	return frames, err
}

// expand decompresses b, all of which must make exactly length bytes.
func (u *unpacker) expand(b []byte, begins bool, length int) ([]byte, error) {
	u.rest = b
	if begins && u.zstd == nil {
		u.zstd = must(zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(zstdWindow), zstd.WithDecoderMaxMemory(zstdWindow)))
	}
	if begins {
		if err := u.zstd.Reset((*rest)(u)); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCompressed, err)
		}
	}
	if length == 0 && len(b) == 0 {
		return nil, nil
	}
	if u.zstd == nil {
		return nil, fmt.Errorf("%w: continues no stream", ErrCompressed)
	}
	expanded := make([]byte, length)
	if _, err := io.ReadFull(u.zstd, expanded); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCompressed, err)
	}
	if len(u.rest) > 0 {
		return nil, fmt.Errorf("%w: holds more than it says", ErrCompressed)
	}
	return expanded, nil
}

// free frees the stream's memory.
func (u *unpacker) free() {
	if u.zstd != nil {
		u.zstd.Close()
	}
	*u = unpacker{}
}

// rest is the payload of an unpacker as a reader, for its decompressor.
type rest unpacker

func (r *rest) Read(b []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// must panics on an error, which constant options never cause.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
