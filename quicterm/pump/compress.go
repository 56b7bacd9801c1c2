package pump

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
// where length is that of the whole frames that the zstd bytes hold. They go on
// where those of the last such frame have ended, so what is said again costs
// little.
const (
	flagBegins = 1 << 0 // a zstd stream begins: nothing of the last is needed
	flagEnds   = 1 << 1 // the stream ends here: both ends forget it

	packedHeader = 4
)

const (
	// zstdWindow is how far back compressed bytes may refer.
	zstdWindow = 256 << 10

	// maxPacked is how many bytes of frames a Compressed frame holds at most.
	maxPacked = 2 * buffer.MaxPayload
)

// ErrCompressed means that a compressed frame is none that could be sent.
var ErrCompressed = errors.New("bad compressed frame")

// A packer makes compressed frames. Its zero value is ready; what it has of
// a stream takes some 800 KB.
type packer struct {
	zstd    *zstd.Encoder // nil before the first, and after the end
	goesOn  bool          // the receiver has all of the stream so far
	used    time.Time     // when it was last
	payload payload
	frame   []byte
}

// A payload is a slice that is written to.
type payload []byte

func (p *payload) Write(b []byte) (int, error) {
	*p = append(*p, b...)
	return len(b), nil
}

// pack returns a frame that stands for the given whole frames, valid until the
// next call, or false if it would be no shorter. What it returns must be sent.
func (p *packer) pack(now time.Time, frames []byte) (frame []byte, ok bool) {
	if len(frames) > maxPacked {
		return nil, false
	}
	if p.zstd == nil {
		p.zstd = must(zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(zstdWindow),
			zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false)))
	}
	p.used = now
	flags := uint32(0)
	if !p.goesOn {
		flags = flagBegins
		p.zstd.Reset(&p.payload)
	}
	p.payload = binary.BigEndian.AppendUint32(p.payload[:0], flags<<24|uint32(len(frames)))
	_, err := p.zstd.Write(frames)
	if err == nil {
		err = p.zstd.Flush()
	}
	p.goesOn = err == nil && len(p.payload) <= buffer.MaxPayload && len(p.payload)+buffer.Overhead < len(frames)
	if !p.goesOn {
		return nil, false
	}
	p.frame = buffer.AppendFrame(p.frame[:0], buffer.Frame{Type: session.Compressed, Payload: p.payload})
	return p.frame, true
}

// end forgets the stream. It returns a frame that has the receiver do so too, or
// nil if it has nothing to forget.
func (p *packer) end() []byte {
	begun := p.zstd != nil
	*p = packer{}
	if !begun {
		return nil
	}
	return buffer.AppendFrame(nil, buffer.Frame{Type: session.Compressed, Payload: []byte{flagEnds, 0, 0, 0}})
}

// An unpacker takes compressed frames apart. Its zero value is ready; what it has
// of a stream takes some 800 KB, whatever it is given.
type unpacker struct {
	zstd *zstd.Decoder // nil if no stream has begun
	rest []byte        // of the payload, not yet decompressed
}

// unpack returns the frames that the payload of a Compressed frame holds, encoded,
// in memory of their own. After an error, nothing that is to come makes sense.
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
		u.forget()
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
		return nil, fmt.Errorf("%w: goes on with nothing", ErrCompressed)
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

// forget frees what is kept of a stream.
func (u *unpacker) forget() {
	if u.zstd != nil {
		u.zstd.Close()
	}
	*u = unpacker{}
}

// rest is the side of an unpacker that its decompressor reads.
type rest unpacker

func (r *rest) Read(b []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// must is for options that are constant.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
