package buffer

import (
	"encoding/binary"
	"hash/crc32"
)

// A frame's short form leaves out what its receiver knows:
//
//	form u8 | number u16 or nothing | length varint or nothing | payload | CRC-32C
//
// The lowest 4 bits of form are those of the type. The CRC is that of the whole form, so it also
// shows whether the receiver has got the number right. A whole form begins with a smaller byte.
const (
	shortForm   = 1 << 7
	shortKind   = 3 << 5 // one of the values below
	shortToEnd  = 1 << 4 // the frame is the last of its group; or of a datagram, and then there is no length
	shortType   = 1<<4 - 1
	unsequenced = 0x80 // types from it on have number 0

	shortNumber      = 0 << 5 // the low 16 bits of the number are there
	shortNext        = 1 << 5 // the number follows that of the frame before
	shortUnsequenced = 2 << 5 // the number is 0
	shortGroup       = 3 << 5 // the same, and a group begins

	// maxShort is the largest payload of a frame in the short form, in bytes. Its length has one
	// byte, and for larger ones there is little to save.
	maxShort = 127
)

// A ShortCodec writes and reads the short form. It is for the frames of one stream in one direction, or of one
// datagram. Both ends have the same state, because the number of a frame may follow from the frame before it.
type ShortCodec struct {
	// Near is a number near to those of a datagram's frames: the next frame that the receiver needs.
	// On a stream it is 0, and frames without another before them have the whole form.
	Near uint64

	previous uint64 // number of the sequenced frame before, or 0
	grouped  bool   // the next frame to parse is of a group that was checked
}

// isShort reports whether b begins with the short form of a frame.
func isShort(b []byte) bool { return len(b) > 0 && b[0]&shortForm != 0 }

// AppendStream appends whole frames to dst, those that can be shorter in the short form.
func (c *ShortCodec) AppendStream(dst, frames []byte) []byte { return c.append(dst, frames, false) }

// AppendDatagram appends all frames of a datagram to dst, those that can be shorter in the short form.
func (c *ShortCodec) AppendDatagram(dst, frames []byte) []byte { return c.append(dst, frames, true) }

func (c *ShortCodec) append(dst, frames []byte, datagram bool) []byte {
	if group, ok := c.appendGroup(dst, frames, datagram); ok {
		return group
	}
	for len(frames) > 0 {
		size, seq, typ := firstFrame(frames)
		form, known := c.form(seq, typ)
		switch n := size - Overhead; {
		case !known || n > maxShort:
			dst = append(dst, frames[:size]...)
		case datagram && size == len(frames):
			dst = appendForm(dst, form|shortToEnd, seq)
			dst = append(dst, frames[headerSize:size]...)
		default:
			dst = appendForm(dst, form, seq)
			dst = append(dst, byte(n))
			dst = append(dst, frames[headerSize:size]...)
		}
		c.follow(seq)
		frames = frames[size:]
	}
	return dst
}

// firstFrame returns the size, the number and the type of the frame that frames begin with.
func firstFrame(frames []byte) (size int, seq uint64, typ Type) {
	size, err := encodedSize(frames)
	if err != nil || size > len(frames) {
		panic("buffer: not a whole frame")
	}
	return size, binary.BigEndian.Uint64(frames), Type(frames[8])
}

func (c *ShortCodec) form(seq uint64, typ Type) (form byte, ok bool) {
	form = shortForm | byte(typ)&shortType
	switch {
	case typ&^unsequenced > shortType || (typ >= unsequenced) != (seq == 0):
		return 0, false
	case seq == 0:
		return form | shortUnsequenced, true
	case seq-1 == c.previous && c.previous > 0:
		return form | shortNext, true
	case c.Near > 0 && nearest(c.Near, uint16(seq)) == seq:
		return form | shortNumber, true
	}
	return 0, false
}

func appendForm(dst []byte, form byte, seq uint64) []byte {
	dst = append(dst, form)
	if form&shortKind == shortNumber {
		dst = binary.BigEndian.AppendUint16(dst, uint16(seq))
	}
	return dst
}

func (c *ShortCodec) follow(seq uint64) {
	if seq > 0 {
		c.previous = seq
	}
}

// nearest returns the number with the low bits given that is nearest to near.
func nearest(near uint64, low uint16) uint64 { return near + uint64(int16(low-uint16(near))) }

// Parse decodes the frame at the start of b, in any form, and returns it with the size of its
// encoding. The payload is a slice of b. The frames of a group are parsed one by one, when all of them are there.
func (c *ShortCodec) Parse(b []byte) (Frame, int, error) {
	switch {
	case c.grouped: // it was checked
	case !isShort(b):
		f, n, err := Parse(b)
		if err == nil {
			c.follow(f.Seq)
		}
		return f, n, err
	case b[0]&shortKind == shortGroup:
		if _, err := c.checkGroup(b); err != nil {
			return Frame{}, 0, err
		}
	default:
		f, size, err := c.parseShort(b, false)
		if err == nil && checksum(0, f) != binary.BigEndian.Uint32(b[size-trailerSize:]) {
			err = ErrChecksum
		}
		if err != nil {
			return Frame{}, 0, err
		}
		c.follow(f.Seq)
		return f, size, nil
	}
	f, size, err := c.parseShort(b, true)
	if err != nil {
		return Frame{}, 0, err // b is not what was checked
	}
	c.grouped = b[0]&shortToEnd == 0
	c.follow(f.Seq)
	return f, size, nil
}

// checksum continues a CRC with that of the whole form of a frame.
func checksum(sum uint32, f Frame) uint32 {
	var whole [headerSize]byte
	binary.BigEndian.PutUint64(whole[:], f.Seq)
	binary.BigEndian.PutUint32(whole[8:], uint32(f.Type)<<24|uint32(len(f.Payload)))
	return crc32.Update(crc32.Update(sum, castagnoli, whole[:]), castagnoli, f.Payload)
}

// parseShort decodes the short form at the start of b, alone or in a group, and checks no CRC.
func (c *ShortCodec) parseShort(b []byte, inGroup bool) (f Frame, size int, err error) {
	header, last, datagram := 1, b[0]&shortToEnd != 0, c.Near > 0
	kind := b[0] & shortKind
	if kind == shortNumber {
		header += 2
	}
	switch {
	case kind == shortNumber && !datagram, kind == shortNext && c.previous == 0:
		return f, 0, ErrChecksum
	case last && !inGroup && !datagram: // a stream has no end
		return f, 0, ErrChecksum
	case len(b) <= header:
		return f, 0, ErrTruncated
	}
	trailer := trailerSize
	if inGroup && !last {
		trailer = 0
	}
	payload := int(b[header])
	if last && datagram {
		payload = len(b) - header - trailer
	} else {
		header++
	}
	switch size = header + payload + trailer; {
	case payload > maxShort:
		return f, 0, ErrTooLong
	case payload < 0, len(b) < size:
		return f, 0, ErrTruncated
	}
	f = Frame{Type: Type(b[0] & shortType), Payload: b[header : header+payload : header+payload]}
	switch kind {
	case shortNumber:
		f.Seq = nearest(c.Near, binary.BigEndian.Uint16(b[1:]))
	case shortNext:
		f.Seq = c.previous + 1
	default:
		f.Type |= unsequenced
	}
	return f, size, nil
}
