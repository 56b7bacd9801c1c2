package buffer

import (
	"encoding/binary"
	"fmt"
	"sort"
)

const (
	// MinCapacity is the smallest capacity of a Ring, in bytes: a few of the largest frames.
	MinCapacity = 512 << 10

	// MaxSegment is how many bytes of frames a Ring evicts at once, at most.
	MaxSegment = 256 << 10
	minSegment = 4 << 10

	// indexStride is how many frames share one entry of a segment's index. A
	// look-up visits at most this many headers.
	indexStride = 16
	indexEntry  = 4                      // bytes
	indexBytes  = Overhead * indexStride // of frames at least, for each entry
)

// A Ring is the sending half of a log: it numbers and encodes frames as they are appended, and keeps their bytes
// until they are released, or until it is full and evicts the oldest for new ones.
//
// It allocates memory in segments as frames come, and frees them as frames are
// released or evicted. It never has more than its capacity; an unused ring has none.
//
// Every frame has an offset in the log: the number of payload bytes before it.
// From offsets a receiver computes how many bytes missing frames had.
//
// A Ring is not safe for concurrent use, but slices that it has returned stay
// valid and unchanged, even after their frames are released or evicted.
type Ring struct {
	capacity int
	held     int    // bytes of memory in segments, at most capacity
	size     int    // of the next segment
	first    uint64 // the oldest frame held, or next
	next     uint64
	offset   uint64 // of next
	segments []*segment
}

type segment struct {
	first  uint64 // sequence number of its first frame
	count  uint64
	offset uint64 // of its first frame
	buf    []byte
	index  []uint32 // position in buf of every indexStride-th frame
	read   bool     // a caller may hold a slice of buf
}

// NewRing returns an empty ring that holds at most capacity bytes, or MinCapacity if that is more.
func NewRing(capacity int) *Ring {
	return &Ring{
		capacity: max(capacity, MinCapacity),
		size:     minSegment,
		first:    1,
		next:     1,
	}
}

// Append encodes a new frame at the end of the log and returns its sequence number. If there is no room, it evicts
// the oldest frames. It panics if the payload is longer than MaxPayload.
func (r *Ring) Append(t Type, payload []byte) uint64 {
	need := Overhead + len(payload)
	s := r.last()
	if s == nil || cap(s.buf)-len(s.buf) < need {
		s = r.grow(need)
	}
	seq := r.next
	if s.count%indexStride == 0 {
		s.index = append(s.index, uint32(len(s.buf)))
	}
	s.buf = AppendFrame(s.buf, Frame{Seq: seq, Type: t, Payload: payload})
	s.count++
	r.next++
	r.offset += uint64(len(payload))
	return seq
}

// First returns the sequence number of the oldest frame held or, if none is held, of the next frame to be appended.
func (r *Ring) First() uint64 { return r.first }

// Next returns the sequence number that the next Append will give.
func (r *Ring) Next() uint64 { return r.next }

// Memory returns how many bytes of memory the ring has allocated.
func (r *Ring) Memory() int { return r.held }

// Capacity returns how many bytes of memory the ring may have.
func (r *Ring) Capacity() int { return r.capacity }

// SetCapacity changes the capacity, to MinCapacity at least. It evicts the oldest frames
// while the ring has more memory than that.
func (r *Ring) SetCapacity(capacity int) {
	r.capacity = max(capacity, MinCapacity)
	for r.held > r.capacity {
		r.drop()
	}
}

// Room returns how many bytes of payload can be appended as one frame without
// evicting any: at most MaxPayload, and 0 if none can.
func (r *Ring) Room() int {
	room := r.spare()
	if s := r.last(); s != nil {
		room = max(room, cap(s.buf)-len(s.buf))
	}
	return max(0, min(room-Overhead, MaxPayload))
}

// Slice returns the encoding of consecutive frames, the first of which is from, and the sequence number after the
// last. It returns at most limit bytes, but at least one frame; and fewer than limit if a segment ends before. If the
// frame from is not held, it returns nil and from.
func (r *Ring) Slice(from uint64, limit int) ([]byte, uint64) {
	s := r.find(from)
	if s == nil {
		return nil, from
	}
	s.read = true
	start := s.position(from)
	if len(s.buf)-start <= limit {
		return s.buf[start:len(s.buf):len(s.buf)], s.first + s.count
	}
	end, seq := start, from
	for {
		next := end + frameSize(s.buf[end:])
		if next-start > limit && seq > from {
			return s.buf[start:end:end], seq
		}
		end, seq = next, seq+1
		if end-start >= limit {
			return s.buf[start:end:end], seq
		}
	}
}

// Intact reports whether a frame that is held has the bytes that were appended, as its checksum says.
func (r *Ring) Intact(seq uint64) bool {
	s := r.find(seq)
	if s == nil {
		return false
	}
	_, _, err := Parse(s.buf[s.position(seq):])
	return err == nil
}

// Size returns the size of the encoding of all frames held from the given one on.
func (r *Ring) Size(from uint64) int {
	from = max(from, r.first)
	if from >= r.next {
		return 0
	}
	return int(r.offset-r.Offset(from)) + Overhead*int(r.next-from)
}

// Offset returns the number of payload bytes in the log before the frame seq. If
// that is not held any more, it returns the offset of First.
func (r *Ring) Offset(seq uint64) uint64 {
	seq = max(seq, r.first)
	if seq >= r.next {
		return r.offset
	}
	s := r.find(seq)
	return s.offset + uint64(s.position(seq)) - Overhead*(seq-s.first)
}

// Find returns the first frame held whose offset is at least the given one, or Next if there is none.
func (r *Ring) Find(offset uint64) uint64 {
	n := sort.Search(int(r.next-r.first), func(i int) bool {
		return r.Offset(r.first+uint64(i)) >= offset
	})
	return r.first + uint64(n)
}

// Release drops all frames before the given one. They cannot be read again.
func (r *Ring) Release(before uint64) {
	r.first = max(r.first, min(before, r.next))
	for len(r.segments) > 0 {
		s := r.segments[0]
		if s.first+s.count > r.first {
			return
		}
		if len(r.segments) == 1 && cap(s.buf) == minSegment && len(s.buf) < minSegment/2 {
			return // a person types: keep this one for the next keys
		}
		r.drop()
		r.size = max(r.size/2, minSegment)
	}
}

// grow adds a segment with room for a frame of the given size. It evicts the oldest
// segments if there is no memory for it.
func (r *Ring) grow(need int) *segment {
	var s *segment
	for r.spare() < need {
		s = r.drop()
	}
	size := max(need, min(r.size, r.spare()))
	r.size = min(r.size*2, MaxSegment, r.capacity/8)
	if s == nil || s.read || cap(s.buf) != size {
		s = &segment{
			buf:   make([]byte, 0, size),
			index: make([]uint32, 0, size/indexBytes+1),
		}
	}
	*s = segment{first: r.next, offset: r.offset, buf: s.buf[:0], index: s.index[:0]}
	r.segments = append(r.segments, s)
	r.held += s.memory()
	return s
}

// spare returns the size of the largest segment that can be added.
func (r *Ring) spare() int {
	return (r.capacity - r.held - indexEntry) / (indexBytes + indexEntry) * indexBytes
}

func (r *Ring) drop() *segment {
	s := r.segments[0]
	r.segments[0] = nil
	r.segments = r.segments[1:]
	r.held -= s.memory()
	r.first = max(r.first, s.first+s.count)
	return s
}

func (r *Ring) last() *segment {
	if len(r.segments) == 0 {
		return nil
	}
	return r.segments[len(r.segments)-1]
}

// find returns the segment that has the frame seq, or nil.
func (r *Ring) find(seq uint64) *segment {
	if seq < r.first || seq >= r.next {
		return nil
	}
	i := sort.Search(len(r.segments), func(i int) bool { return r.segments[i].first > seq })
	return r.segments[i-1]
}

func (s *segment) memory() int { return cap(s.buf) + indexEntry*cap(s.index) }

// position returns the index in buf at which the frame seq begins.
func (s *segment) position(seq uint64) int {
	n := seq - s.first
	pos := int(s.index[n/indexStride])
	for range n % indexStride {
		pos += frameSize(s.buf[pos:])
	}
	return pos
}

func frameSize(b []byte) int {
	size, err := encodedSize(b)
	if err != nil {
		panic(fmt.Sprintf("buffer: corrupt ring: %v: %x", err, binary.BigEndian.Uint64(b)))
	}
	return size
}
