package wire

import (
	"bytes"
	"errors"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

func TestReadTruncatedAtEachByte(t *testing.T) {
	for _, g := range goldenBodies {
		b := unhex(g.hex)
		for n := range b {
			_, err := Read(bytes.NewReader(b[:n]), MaxMessage)
			if want := map[bool]error{true: io.EOF, false: io.ErrUnexpectedEOF}[n == 0]; err != want {
				t.Errorf("%T: Read of the first %d bytes: %v, want %v", g.body, n, err, want)
			}
		}
	}
}

// Read accepts a message in any pieces, and leaves the bytes behind it unread.
func TestReadLeavesWhatFollows(t *testing.T) {
	first := Message{Type: TypeKill, Payload: []byte("first")}
	second := Message{Type: TypeDone, Payload: []byte{}}
	stream := append(second.Append(first.Append(nil)), "frames"...)
	readers := map[string]func(io.Reader) io.Reader{
		"whole":  func(r io.Reader) io.Reader { return r },
		"halves": iotest.HalfReader,
		"bytes":  iotest.OneByteReader,
		"eof":    iotest.DataErrReader,
	}
	for name, wrap := range readers {
		r := wrap(bytes.NewReader(stream))
		for _, want := range []Message{first, second} {
			if got, err := Read(r, MaxMessage); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: Read = %v, %v; want %v", name, got, err, want)
			}
		}
		if rest, err := io.ReadAll(r); err != nil || string(rest) != "frames" {
			t.Errorf("%s: left %q, %v", name, rest, err)
		}
	}
}

func TestReadPassesErrorsOn(t *testing.T) {
	broken := errors.New("broken")
	for n := range 6 {
		r := io.MultiReader(bytes.NewReader(unhex("0c000007 a101")[:n]), iotest.ErrReader(broken))
		if _, err := Read(r, MaxMessage); !errors.Is(err, broken) {
			t.Errorf("after %d bytes: %v, want the reader's error", n, err)
		}
	}
}

// Read returns a message of an unknown type.
func TestReadUnknownType(t *testing.T) {
	for _, typ := range []Type{0, TypeDescription + 1, TypeEnd + 1, 255} {
		want := Message{Type: typ, Payload: []byte{1, 2, 3}}
		if got, err := Read(bytes.NewReader(want.Append(nil)), MaxMessage); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Read = %v, %v; want %v", got, err, want)
		}
	}
}

func TestReadTooLong(t *testing.T) {
	header := func(n int) []byte { return []byte{byte(TypeHello), byte(n >> 16), byte(n >> 8), byte(n)} }
	tests := []struct{ length, limit int }{
		{1, 0},
		{101, 100},
		{MaxMessage + 1, MaxMessage},
		{MaxMessage + 1, math.MaxInt}, // the limit of the protocol counts as well
		{1<<24 - 1, MaxMessage},
		{0, -1},
	}
	for _, test := range tests {
		// There is nothing behind the header: reading on is another error.
		r := bytes.NewReader(header(test.length))
		if _, err := Read(r, test.limit); err != errTooLong {
			t.Errorf("%d bytes, limit %d: %v, want errTooLong", test.length, test.limit, err)
		}
		if allocs := testing.AllocsPerRun(100, func() {
			r.Reset(header(test.length))
			Read(r, test.limit)
		}); allocs > 2 {
			t.Errorf("%d bytes, limit %d: %v allocations, want those of two headers", test.length, test.limit, allocs)
		}
	}
	for _, n := range []int{0, 1, 100} {
		if m, err := Read(bytes.NewReader(append(header(n), make([]byte, n)...)), n); err != nil || len(m.Payload) != n {
			t.Errorf("%d bytes, as many as allowed: %v, %v", n, m, err)
		}
	}
}

func TestLargestMessage(t *testing.T) {
	want := Message{Type: TypeAttach, Payload: bytes.Repeat([]byte{7}, MaxMessage)}
	if got, err := Read(bytes.NewReader(want.Append(nil)), MaxMessage); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Read of %d bytes: %v", MaxMessage, err)
	}
	defer func() {
		if recover() == nil {
			t.Error("Append of a message that is too long does not panic")
		}
	}()
	Message{Payload: make([]byte, MaxMessage+1)}.Append(nil)
}

func TestNewTooLong(t *testing.T) {
	longest := strings.Repeat("x", 128<<10-1) // of an argument on Linux, without its NUL
	if _, err := New(&Attach{Command: longest}); err != nil {
		t.Errorf("the longest command: %v", err)
	}
	long := &Attach{Command: strings.Repeat("x", MaxMessage)}
	if _, err := New(long); err != errTooLong {
		t.Errorf("New: %v, want errTooLong", err)
	}
	var b bytes.Buffer
	if err := Send(&b, long); err != errTooLong || b.Len() > 0 {
		t.Errorf("Send: %v after %d bytes, want errTooLong and nothing sent", err, b.Len())
	}
}

// writes counts calls.
type writes struct {
	bytes.Buffer
	calls int
}

func (w *writes) Write(b []byte) (int, error) {
	w.calls++
	return w.Buffer.Write(b)
}

// Messages that two goroutines send at once are not mixed.
func TestSendWritesOnce(t *testing.T) {
	for _, g := range goldenBodies {
		var w writes
		if err := Send(&w, g.body); err != nil || w.calls != 1 || !bytes.Equal(w.Bytes(), unhex(g.hex)) {
			t.Errorf("Send(%T) = %v, %d calls, %x", g.body, err, w.calls, w.Bytes())
		}
	}
}
