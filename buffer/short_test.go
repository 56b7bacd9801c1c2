package buffer

import (
	"bytes"
	"encoding/hex"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The bytes on the wire: a change here is a change of the protocol. The frames of a row are those
// of one datagram, with near, or of one stream.
var goldenShort = []struct {
	near   uint64
	frames []Frame
	hex    string
}{
	{70_000, []Frame{{Seq: 70_001, Type: 3, Payload: []byte("x")}}, "93 1171 78 05233cad"},
	{70_000, []Frame{{Seq: 65_535, Type: 1}, {Type: 0x80, Payload: []byte("ack")}, {Seq: 65_536, Type: 1, Payload: []byte("y")}},
		"81 ffff 00 e7f65f7a c0 03 61636b 0b160fa8 b1 79 d7fea0d9"},
	{70_000, []Frame{{Seq: 1, Type: 1}, {Type: 0x90}}, "0000000000000001 01 000000 ce347049 0000000000000000 90 000000 90a4cd5f"},
	{0, []Frame{{Seq: 7, Type: 1, Payload: []byte("x")}, {Type: 0x80}, {Seq: 8, Type: 1, Payload: []byte("y")}},
		"0000000000000007 01 000001 78 eae0a250 c0 00 79c07c62 a1 01 79 fec4c5e1"},
}

func TestShortGolden(t *testing.T) {
	for _, g := range goldenShort {
		var whole []byte
		for _, f := range g.frames {
			whole = AppendFrame(whole, f)
		}
		want := unhex(t, g.hex)
		got := (&ShortCodec{}).AppendStream(nil, whole)
		if g.near > 0 {
			got = (&ShortCodec{Near: g.near}).AppendDatagram(nil, whole)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%v near %d: %x, want %x", g.frames, g.near, got, want)
		}
		wantShort(t, &ShortCodec{Near: g.near}, got, g.frames)
	}
}

// wantShort parses b, which must hold exactly the given frames.
func wantShort(t testing.TB, c *ShortCodec, b []byte, want []Frame) {
	t.Helper()
	for _, w := range want {
		f, n, err := c.Parse(b)
		if err != nil || !equalFrames(f, w) {
			t.Fatalf("parsed %v, %v; want %v", f, err, w)
		}
		b = b[n:]
	}
	if len(b) > 0 {
		t.Errorf("%d bytes are left", len(b))
	}
}

// A receiver that is some frames ahead of the sender's knowledge, or behind, gets the right number.
func TestShortNumbers(t *testing.T) {
	for _, seq := range []uint64{1, 2, 100, 32_768, 65_535, 65_536, 65_537, 1 << 40, 1 << 62} {
		b := (&ShortCodec{Near: seq}).AppendDatagram(nil, AppendFrame(nil, Frame{Seq: seq, Type: 3}))
		for _, off := range []int64{-32_767, -100, -1, 0, 1, 100, 32_767} {
			near := seq + uint64(off)
			if int64(near) < 1 {
				continue
			}
			if f, _, err := (&ShortCodec{Near: near}).Parse(b); err != nil || f.Seq != seq {
				t.Errorf("frame %d, with %d next: %d, %v", seq, near, f.Seq, err)
			}
		}
		if f, _, err := (&ShortCodec{Near: seq + 40_000}).Parse(b); err != ErrChecksum {
			t.Errorf("frame %d, far behind: %v, %v", seq, f, err)
		}
	}
}

func TestShortTruncatedAtEachByte(t *testing.T) {
	whole := AppendFrame(AppendFrame(nil, Frame{Seq: 7, Type: 1, Payload: []byte("payload")}), Frame{Seq: 8, Type: 1, Payload: []byte("more")})
	b := new(ShortCodec).AppendStream(nil, whole)
	for n := range b {
		r := NewReader(bytes.NewReader(b[:n]))
		var err error
		for err == nil {
			_, err = r.Next()
		}
		if want := map[bool]error{true: io.EOF, false: ErrTruncated}[n == 0 || n == 23]; err != want {
			t.Errorf("Reader on the first %d bytes: %v, want %v", n, err, want)
		}
	}
	b = (&ShortCodec{Near: 7}).AppendDatagram(nil, AppendFrame(nil, Frame{Seq: 7, Type: 1, Payload: []byte("payload")}))
	for n := range b {
		if f, _, err := (&ShortCodec{Near: 7}).Parse(b[:n]); err == nil {
			t.Errorf("the first %d bytes of a datagram: %v", n, f)
		}
	}
}

func TestShortFlippedBits(t *testing.T) {
	whole := AppendFrame(AppendFrame(nil, Frame{Type: 0x80, Payload: []byte("ack")}), Frame{Seq: 7, Type: 1, Payload: []byte("payload")})
	good := (&ShortCodec{Near: 7}).AppendDatagram(nil, whole)
	for i := range len(good) * 8 {
		wantRefused(t, good, i)
	}
}

// What makes no sense on a stream, or at its beginning, is refused before its bytes are there.
func TestShortRefuses(t *testing.T) {
	for _, text := range []string{"81 0001", "91", "a1 00", "b1", "e0 00 e0", "e0 00 00"} {
		b := unhex(t, text)
		if _, _, err := new(ShortCodec).Parse(b); err != ErrChecksum {
			t.Errorf("%x on a stream: %v", b, err)
		}
		if r := NewReader(bytes.NewReader(b)); r.fill() != nil || !r.Ready() {
			t.Errorf("Reader not ready to tell of %x", b)
		}
	}
	if _, _, err := (&ShortCodec{Near: 1}).Parse(unhex(t, "81 0001 80")); err != ErrTooLong {
		t.Errorf("a payload of 128 bytes: %v", err)
	}
	if _, _, err := (&ShortCodec{Near: 1}).Parse(append(unhex(t, "91 0001"), make([]byte, 200)...)); err != ErrTooLong {
		t.Errorf("a payload to the end: %v", err)
	}
}

// FuzzShort reads any bytes as a datagram and as a stream. What is read is written as it was, if that is how
// this package writes it, and what is written is read again.
func FuzzShort(f *testing.F) {
	for _, g := range slices.Concat(goldenShort, goldenGroups) {
		f.Add(g.near, unhex(f, g.hex))
	}
	f.Fuzz(func(t *testing.T, near uint64, b []byte) {
		c := &ShortCodec{Near: near}
		var frames []Frame
		var whole []byte
		for rest := b; len(rest) > 0; {
			frame, n, err := c.Parse(rest)
			if err != nil {
				break
			}
			if n <= 0 || n > len(rest) || len(frame.Payload) > MaxPayload {
				t.Fatalf("%d of %d bytes are %v", n, len(rest), frame)
			}
			frames, whole, rest = append(frames, frame), AppendFrame(whole, frame), rest[n:]
		}
		for _, frame := range frames {
			if frame.Seq>>63 != 0 {
				return // the whole form of such a number looks like a short one; no log has it
			}
		}
		datagram := (&ShortCodec{Near: near}).AppendDatagram(nil, whole)
		if near > 0 {
			wantShort(t, &ShortCodec{Near: near}, datagram, frames)
		}
		stream := new(ShortCodec).AppendStream(nil, whole)
		if len(datagram) > len(whole) || len(stream) > len(whole) {
			t.Errorf("%d bytes became %d and %d", len(whole), len(datagram), len(stream))
		}
		r := NewReader(iotest.HalfReader(bytes.NewReader(stream)))
		for _, w := range frames {
			if got, err := r.Next(); err != nil || !equalFrames(got, w) {
				t.Fatalf("Reader: %v, %v; want %v", got, err, w)
			}
		}
	})
}
