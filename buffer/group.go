package buffer

import (
	"encoding/binary"
	"hash/crc32"
)

// A group is two frames or more in the short form that were sent together, the first of them unsequenced. Only the
// last has a CRC: that of the whole forms of all of them, without their CRCs.

// maxGroup bounds what a reader keeps of a group before it can check it. It is more than a datagram
// has, or a short write to a stream.
const maxGroup = 2048

// appendGroup appends frames as a group, if they can be one.
func (c *ShortCodec) appendGroup(dst, frames []byte, datagram bool) ([]byte, bool) {
	previous, sum := c.previous, uint32(0)
	if len(frames) == 0 || len(frames) > maxGroup {
		return nil, false
	}
	for first := true; len(frames) > 0; first = false {
		size, seq, typ := firstFrame(frames)
		last := size == len(frames)
		form, known := c.form(seq, typ)
		// A sum made anew would hide that memory has changed a frame.
		_, _, err := Parse(frames)
		if err != nil || !known || size-Overhead > maxShort || first && (seq > 0 || last) {
			c.previous = previous
			return nil, false
		}
		if first {
			form |= shortGroup
		}
		if last {
			form |= shortToEnd
		}
		dst = appendForm(dst, form, seq)
		if !last || !datagram {
			dst = append(dst, byte(size-Overhead))
		}
		dst = append(dst, frames[headerSize:size-trailerSize]...)
		sum = crc32.Update(sum, castagnoli, frames[:size-trailerSize])
		c.follow(seq)
		frames = frames[size:]
	}
	return binary.BigEndian.AppendUint32(dst, sum), true
}

// checkGroup returns the size of the group at the start of b.
func (c *ShortCodec) checkGroup(b []byte) (size int, err error) {
	walk, sum := ShortCodec{Near: c.Near, previous: c.previous}, uint32(0)
	for {
		rest := b[size:]
		switch {
		case size > maxGroup:
			return 0, ErrTooLong
		case len(rest) == 0:
			return 0, ErrTruncated
		case rest[0]&shortForm == 0 || (rest[0]&shortKind == shortGroup) != (size == 0):
			return 0, ErrChecksum
		case size == 0 && rest[0]&shortToEnd != 0: // one frame alone
			return 0, ErrChecksum
		}
		f, n, err := walk.parseShort(rest, true)
		if err != nil {
			return 0, err
		}
		walk.follow(f.Seq)
		sum = checksum(sum, f)
		size += n
		if rest[0]&shortToEnd != 0 {
			if sum != binary.BigEndian.Uint32(rest[n-trailerSize:]) {
				return 0, ErrChecksum
			}
			return size, nil
		}
	}
}
