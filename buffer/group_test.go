package buffer

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"
	"testing/iotest"
)

// The bytes on the wire. Frames alone are no group.
var goldenGroups = []struct {
	near   uint64
	frames []Frame
	hex    string
}{
	{70_000, []Frame{{Type: 0x80, Payload: []byte("ack")}, {Seq: 65_535, Type: 1}, {Seq: 65_536, Type: 1, Payload: []byte("y")}},
		"e0 03 61636b 81 ffff 00 b1 79 12e3d215"},
	{0, []Frame{{Seq: 7, Type: 1, Payload: []byte("x")}}, "0000000000000007 01 000001 78 eae0a250"},
	{0, []Frame{{Type: 0x80, Payload: []byte("ack")}, {Type: 0x81}}, "e0 03 61636b d1 00 0be19413"},
	{70_000, []Frame{{Type: 0x80}}, "d0 79c07c62"},
}

func TestGroupGolden(t *testing.T) {
	for _, g := range goldenGroups {
		var whole []byte
		for _, f := range g.frames {
			whole = AppendFrame(whole, f)
		}
		codec := ShortCodec{Near: g.near}
		got := codec.AppendStream(nil, whole)
		if g.near > 0 {
			got = codec.AppendDatagram(nil, whole)
		}
		if want := unhex(t, g.hex); !bytes.Equal(got, want) {
			t.Errorf("%v near %d: %x, want %x", g.frames, g.near, got, want)
		}
		wantShort(t, &ShortCodec{Near: g.near}, got, g.frames)
	}
}

// groups is two writes to a stream, the second of them a group, and the size of the first.
func groups() (b []byte, first int) {
	var c ShortCodec
	b = c.AppendStream(nil, AppendFrame(nil, Frame{Seq: 7, Type: 1, Payload: []byte("payload")}))
	first = len(b)
	whole := AppendFrame(AppendFrame(nil, Frame{Type: 0x80, Payload: []byte("ack")}), Frame{Seq: 8, Type: 1, Payload: []byte("more")})
	return c.AppendStream(b, whole), first
}

func TestGroupTruncatedAtEachByte(t *testing.T) {
	b, first := groups()
	for n := first + 1; n < len(b); n++ {
		r := NewReader(iotest.OneByteReader(bytes.NewReader(b[:n])))
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
		if f, err := r.Next(); err != ErrTruncated {
			t.Errorf("Reader on the first %d bytes: %v, %v", n, f, err)
		}
	}
	r := NewReader(iotest.OneByteReader(bytes.NewReader(b)))
	for range 3 {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Next(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

// wantRefused parses a datagram or a stream, both of which begin with frame 7 or know it, with one bit flipped.
func wantRefused(t *testing.T, good []byte, bit int) {
	t.Helper()
	b := bytes.Clone(good)
	b[bit/8] ^= 1 << (bit % 8)
	c := &ShortCodec{Near: 7}
	for len(b) > 0 {
		_, n, err := c.Parse(b)
		if err != nil {
			return
		}
		b = b[n:]
	}
	t.Errorf("bit %d flipped: accepted", bit)
}

func TestGroupFlippedBits(t *testing.T) {
	whole := AppendFrame(AppendFrame(nil, Frame{Type: 0x80, Payload: []byte("ack")}), Frame{Seq: 7, Type: 1, Payload: []byte("payload")})
	good := (&ShortCodec{Near: 7}).AppendDatagram(nil, whole)
	for bit := range len(good) * 8 {
		wantRefused(t, good, bit)
	}
}

// A frame that memory has changed is refused, also if it is sent with others.
func TestGroupOfChangedFrame(t *testing.T) {
	whole := AppendFrame(nil, Frame{Type: 0x80, Payload: []byte("ack")})
	whole = AppendFrame(whole, Frame{Seq: 7, Type: 1, Payload: []byte("more")})
	for i := len(whole) - len("more") - trailerSize; i < len(whole); i++ {
		changed := bytes.Clone(whole)
		changed[i] ^= 1
		b := (&ShortCodec{Near: 7}).AppendDatagram(nil, changed)
		codec := ShortCodec{Near: 7}
		_, n, err := codec.Parse(b)
		if err == nil {
			_, _, err = codec.Parse(b[n:])
		}
		if err == nil {
			t.Errorf("byte %d changed: accepted", i)
		}
	}
}

// A group without an end is refused before it fills the memory.
func TestEndlessGroup(t *testing.T) {
	b := append(unhex(t, "e0 00"), bytes.Repeat(unhex(t, "c0 00"), maxGroup)...)
	r := NewReader(iotest.OneByteReader(bytes.NewReader(b)))
	if f, err := r.Next(); err != ErrTooLong || len(r.chunk) > maxGroup+2 {
		t.Errorf("%v, %v, with %d bytes kept", f, err, len(r.chunk))
	}
}

// One frame alone is no group, although its CRC is good.
func TestGroupOfOne(t *testing.T) {
	f := Frame{Type: 0x80, Payload: []byte("ack")}
	form := append([]byte{shortForm | shortGroup | shortToEnd, byte(len(f.Payload))}, f.Payload...)
	if got, _, err := new(ShortCodec).Parse(binary.BigEndian.AppendUint32(form, checksum(0, f))); err != ErrChecksum {
		t.Errorf("%v, %v", got, err)
	}
}
