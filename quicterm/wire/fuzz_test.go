package wire

import (
	"bytes"
	"io"
	"reflect"
	"testing"
)

// An askedReader records the size of the largest read.
type askedReader struct {
	io.Reader
	most int
}

func (r *askedReader) Read(b []byte) (int, error) {
	r.most = max(r.most, len(b))
	return r.Reader.Read(b)
}

func FuzzRead(f *testing.F) {
	for _, g := range goldenBodies {
		f.Add(unhex(g.hex), uint32(MaxMessage))
	}
	f.Fuzz(func(t *testing.T, b []byte, limit uint32) {
		source := bytes.NewReader(b)
		r := &askedReader{Reader: source}
		m, err := Read(r, int(limit))
		read := len(b) - source.Len()
		allowed := min(int(limit), MaxMessage)
		if r.most > max(headerSize, allowed) {
			t.Errorf("room for %d bytes, %d allowed", r.most, allowed)
		}
		switch {
		case err == nil:
			if len(m.Payload) > allowed || !bytes.Equal(m.Append(nil), b[:read]) {
				t.Errorf("%v was read from %x", m, b[:read])
			}
		case err == errTooLong:
			if read != headerSize || r.most > headerSize {
				t.Errorf("read %d bytes and asked for %d of a message that is too long", read, r.most)
			}
		case err == io.EOF:
			if len(b) > 0 {
				t.Errorf("end of the stream after %d bytes", len(b))
			}
		case err == io.ErrUnexpectedEOF:
			if source.Len() > 0 || len(b) == 0 {
				t.Errorf("message ends before %d of its bytes, or does not begin", source.Len())
			}
		default:
			t.Errorf("unexpected error: %v", err)
		}
	})
}

// A decoded message can be encoded, and then decodes to the same.
func FuzzDecode(f *testing.F) {
	for _, g := range goldenBodies {
		b := unhex(g.hex)
		f.Add(b[0], b[headerSize:])
	}
	f.Fuzz(func(t *testing.T, typ byte, payload []byte) {
		for _, g := range goldenBodies {
			if g.body.Type() != Type(typ) {
				continue
			}
			first, second := empty(g.body), empty(g.body)
			if err := (Message{Type(typ), payload}).Decode(first); err != nil {
				return
			}
			m, err := New(first)
			if err == errTooLong {
				return // null is shorter than what it stands for
			}
			if err != nil {
				t.Fatalf("%+v was decoded but cannot be encoded: %v", first, err)
			}
			if err := m.Decode(second); err != nil {
				t.Fatalf("%+v encodes to %x: %v", first, m.Payload, err)
			}
			if !reflect.DeepEqual(first, second) {
				t.Errorf("decoded %+v, and after encoding %+v", first, second)
			}
		}
		DecodeInfo(payload)
	})
}
