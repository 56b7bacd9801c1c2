package buffer

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// The bytes on the wire: a change here is a change of the protocol.
var goldenFrames = []struct {
	frame Frame
	hex   string
}{
	{Frame{Seq: 1, Type: 1, Payload: []byte("ls\n")}, "0000000000000001 01 000003 6c730a 70e1b9f2"},
	{Frame{Seq: 0, Type: 0x41}, "0000000000000000 41 000000 5d834002"},
	{Frame{Seq: 1<<64 - 1, Type: 0xff, Payload: []byte{0}}, "ffffffffffffffff ff 000001 00 082f9e77"},
}

func TestFrameGolden(t *testing.T) {
	for _, g := range goldenFrames {
		want, err := hex.DecodeString(strings.ReplaceAll(g.hex, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		if got := AppendFrame(nil, g.frame); !bytes.Equal(got, want) {
			t.Errorf("AppendFrame(%v) = %x, want %x", g.frame, got, want)
		}
		f, n, err := Parse(append(want, "more"...))
		if err != nil || n != len(want) || !equalFrames(f, g.frame) {
			t.Errorf("Parse(%x) = %v, %d, %v; want %v, %d", want, f, n, err, g.frame, len(want))
		}
	}
}

func TestParseTruncatedAtEachByte(t *testing.T) {
	b := AppendFrame(nil, Frame{Seq: 7, Type: 1, Payload: []byte("payload")})
	for n := range b {
		if _, _, err := Parse(b[:n]); err != ErrTruncated {
			t.Errorf("Parse of the first %d bytes: %v, want ErrTruncated", n, err)
		}
		_, err := NewReader(bytes.NewReader(b[:n])).Next()
		if want := map[bool]error{true: io.EOF, false: ErrTruncated}[n == 0]; err != want {
			t.Errorf("Reader on the first %d bytes: %v, want %v", n, err, want)
		}
	}
}

func TestParseFlippedBits(t *testing.T) {
	good := AppendFrame(nil, Frame{Seq: 7, Type: 1, Payload: []byte("payload")})
	for i := range len(good) * 8 {
		b := bytes.Clone(good)
		b[i/8] ^= 1 << (i % 8)
		if f, _, err := Parse(b); err == nil {
			t.Errorf("bit %d flipped: accepted as %v", i, f)
		}
	}
}

func TestParseTooLong(t *testing.T) {
	b := AppendFrame(nil, Frame{Seq: 1, Payload: make([]byte, MaxPayload)})
	if _, _, err := Parse(b); err != nil {
		t.Errorf("largest frame: %v", err)
	}
	b[9], b[10], b[11] = 1, 0, 1 // MaxPayload + 1
	if _, _, err := Parse(b[:headerSize]); err != ErrTooLong {
		t.Errorf("Parse: %v, want ErrTooLong before any of the payload is there", err)
	}
	r := NewReader(bytes.NewReader(b))
	if _, err := r.Next(); err != ErrTooLong {
		t.Errorf("Reader: %v, want ErrTooLong", err)
	}
	if !r.Ready() {
		t.Error("Reader not ready to tell of a frame that is too long")
	}
}

func TestReader(t *testing.T) {
	var stream []byte
	var want []Frame
	for i := range 300 {
		f := Frame{Seq: uint64(i + 1), Type: Type(i), Payload: bytes.Repeat([]byte{byte(i)}, i*i%MaxPayload)}
		want = append(want, f)
		stream = AppendFrame(stream, f)
	}
	readers := map[string]io.Reader{
		"whole":  bytes.NewReader(stream),
		"halves": iotest.HalfReader(bytes.NewReader(stream)),
		"bytes":  iotest.OneByteReader(bytes.NewReader(stream)),
		"eof":    iotest.DataErrReader(bytes.NewReader(stream)),
	}
	for name, source := range readers {
		r := NewReader(source)
		var got []Frame
		for {
			ready := r.Ready()
			f, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: frame %d: %v", name, len(got), err)
			}
			if ready && r.chunk == nil {
				t.Errorf("%s: ready without bytes", name)
			}
			got = append(got, f)
		}
		// All are compared at the end: a frame stays as it was handed out.
		if len(got) != len(want) {
			t.Fatalf("%s: %d frames, want %d", name, len(got), len(want))
		}
		for i := range got {
			if !equalFrames(got[i], want[i]) {
				t.Fatalf("%s: frame %d = %v, want %v", name, i, got[i], want[i])
			}
		}
	}
}

func TestReaderReady(t *testing.T) {
	pr, pw := io.Pipe()
	defer pr.Close()
	r := NewReader(pr)
	frame := AppendFrame(nil, Frame{Seq: 1, Payload: []byte("x")})
	go pw.Write(append(append([]byte{}, frame...), append(frame, frame[:5]...)...))
	if r.Ready() {
		t.Error("ready before anything was read")
	}
	for i, ready := range []bool{true, false} {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
		if r.Ready() != ready {
			t.Errorf("after frame %d: Ready() = %v, want %v", i+1, r.Ready(), ready)
		}
	}
}

func TestReaderWithoutProgress(t *testing.T) {
	if _, err := NewReader(zeroReader{}).Next(); err != io.ErrNoProgress {
		t.Errorf("got %v, want io.ErrNoProgress", err)
	}
}

type zeroReader struct{}

func (zeroReader) Read([]byte) (int, error) { return 0, nil }

func FuzzParse(f *testing.F) {
	for _, g := range goldenFrames {
		f.Add(AppendFrame(nil, g.frame))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, n, err := Parse(b)
		if err == nil && !bytes.Equal(AppendFrame(nil, frame), b[:n]) {
			t.Errorf("%v does not encode to the bytes that it was parsed from", frame)
		}
		// A reader finds the same frames in the same bytes as a codec that has all of them.
		var codec ShortCodec
		r := NewReader(iotest.HalfReader(bytes.NewReader(b)))
		for {
			want, n, wantErr := codec.Parse(b)
			got, err := r.Next()
			if wantErr == ErrTruncated && len(b) == 0 {
				wantErr = io.EOF
			}
			if !errors.Is(err, wantErr) || !equalFrames(got, want) {
				t.Fatalf("Reader: %v, %v; Parse: %v, %v", got, err, want, wantErr)
			}
			if err != nil {
				return
			}
			b = b[n:]
		}
	})
}

func equalFrames(a, b Frame) bool {
	return a.Seq == b.Seq && a.Type == b.Type && bytes.Equal(a.Payload, b.Payload)
}
