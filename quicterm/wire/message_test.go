package wire

import (
	"bytes"
	"errors"
	"io"
	"math"
	"reflect"
	"runtime"
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

// A message may come in any pieces; what is behind it stays where it is.
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

// A message of a type that nobody knows can be read, answered and skipped.
func TestReadUnknownType(t *testing.T) {
	for _, typ := range []Type{0, TypeError + 1, TypeSpec + 1, 255} {
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
		// There is nothing behind the header: to read on would be another error.
		r := bytes.NewReader(header(test.length))
		if _, err := Read(r, test.limit); err != ErrTooLong {
			t.Errorf("%d bytes, limit %d: %v, want ErrTooLong", test.length, test.limit, err)
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
	if _, err := New(long); err != ErrTooLong {
		t.Errorf("New: %v, want ErrTooLong", err)
	}
	var b bytes.Buffer
	if err := Send(&b, long); err != ErrTooLong || b.Len() > 0 {
		t.Errorf("Send: %v after %d bytes, want ErrTooLong and nothing sent", err, b.Len())
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

// Two messages that are sent at once by two goroutines must not get mixed up.
func TestSendWritesOnce(t *testing.T) {
	for _, g := range goldenBodies {
		var w writes
		if err := Send(&w, g.body); err != nil || w.calls != 1 || !bytes.Equal(w.Bytes(), unhex(g.hex)) {
			t.Errorf("Send(%T) = %v, %d calls, %x", g.body, err, w.calls, w.Bytes())
		}
	}
}

func TestDecodeIntoAnotherType(t *testing.T) {
	for _, g := range goldenBodies {
		for _, other := range goldenBodies {
			if other.body.Type() == g.body.Type() {
				continue
			}
			v := empty(other.body)
			if err := goldenMessage(t, g.hex).Decode(v); err == nil || !reflect.DeepEqual(v, empty(other.body)) {
				t.Errorf("message %d decoded as %T: %+v, %v", g.body.Type(), v, v, err)
			}
		}
	}
}

func TestDecodeTruncatedAtEachByte(t *testing.T) {
	for _, g := range goldenBodies {
		whole := goldenMessage(t, g.hex)
		end := len(whole.Payload)
		if s, ok := g.body.(*State); ok {
			end -= len(s.Info) // which nobody looks into
		}
		for n := range end {
			if err := (Message{whole.Type, whole.Payload[:n]}).Decode(empty(g.body)); err == nil {
				t.Errorf("the first %d bytes of %T were accepted", n, g.body)
			}
		}
		if end < len(whole.Payload) {
			continue
		}
		if err := (Message{whole.Type, append(whole.Payload, 0)}).Decode(empty(g.body)); err == nil {
			t.Errorf("%T with a byte behind it was accepted", g.body)
		}
	}
}

// Later versions add fields. What is in them is none of our business, as long as
// it is CBOR as we know it.
func TestDecodeUnknownFields(t *testing.T) {
	values := []string{
		"00", "20", "1bffffffffffffffff", // numbers
		"43010203", "6161", "61ff", // bytes, and text, UTF-8 or not
		"820102", "a10102", "a201000101", "a1616100", // arrays and maps
		"f4", "f6", "f7", "f0", "f93c00", "fb7ff8000000000000", // simple values and floats
		strings.Repeat("81", 7) + "00", // as deep as is allowed
	}
	for _, g := range goldenBodies {
		if !isCBOR(g.body) {
			continue
		}
		for _, key := range []string{"0e", "18ff", "1903e8", "20", "6131"} {
			for _, value := range values {
				m := goldenMessage(t, g.hex)
				if key == "0e" && m.Type == TypeSpec {
					continue // it knows that
				}
				m.Payload[0]++ // one more pair
				m.Payload = append(m.Payload, unhex(key+value)...)
				got := empty(g.body)
				if err := m.Decode(got); err != nil || !reflect.DeepEqual(got, g.body) {
					t.Errorf("%T with field %s: %s: %+v, %v", g.body, key, value, got, err)
				}
			}
		}
	}
}

// What our encoder never makes.
func TestDecodeStrangeCBOR(t *testing.T) {
	refused := []struct {
		why  string
		body Body
		hex  string
	}{
		{"no map", &Done{}, "80"},
		{"a number", &Done{}, "01"},
		{"two maps", &Done{}, "a0a0"},
		{"an array of the fields", &Error{}, "82016161"},

		{"map of indefinite length", &Error{}, "bf0101ff"},
		{"text of indefinite length", &Error{}, "a1027f6161ff"},
		{"bytes of indefinite length", &Ticket{}, "a1015f4161ff"},
		{"array of indefinite length", &Offer{}, "a1019f4101ff"},
		{"unknown array of indefinite length", &Error{}, "a118639fff"},

		{"key twice", &Error{}, "a201000101"},
		{"key twice, once not in its shortest form", &Error{}, "a20100180101"},
		{"unknown key twice", &Error{}, "a2186300186300"},

		{"tag on the message", &Done{}, "d9d9f7a0"},
		{"tag on a field", &Error{}, "a101c101"},
		{"bignum", &Attached{}, "a109c24101"},
		{"tag on an unknown field", &Error{}, "a11863c101"},

		{"too deep", &Error{}, "a11863" + strings.Repeat("81", 8) + "00"},
		{"far too deep", &Error{}, "a11863" + strings.Repeat("81", MaxMessage-4) + "00"},
		{"too many elements", &Offer{}, "a101" + "991001" + strings.Repeat("40", 4097)},
		{"too many unknown elements", &Error{}, "a11863" + "991001" + strings.Repeat("00", 4097)},
		{"too many pairs", &Error{}, "a11863" + "b90401" + strings.Repeat("0000", 1025)},
		{"more elements than there are", &Offer{}, "a101" + "990fff" + "40"},
		{"more elements than there can be", &Offer{}, "a101" + "9bffffffffffffffff" + "40"},
		{"more bytes than there are", &Ticket{}, "a101" + "5affffffff" + "40"},
		{"more bytes than there can be", &Ticket{}, "a101" + "5bffffffffffffffff" + "40"},

		{"number too large", &Error{}, "a101190100"},
		{"number below zero", &Error{}, "a10120"},
		{"float for a number", &Error{}, "a101f93c00"},
		{"number for a bool", &Attach{}, "a10401"},
		{"bytes for text", &Error{}, "a1024161"},
		{"text for bytes", &Ticket{}, "a1016161"},
		{"map for an array", &Offer{}, "a101a0"},
		{"key of bytes", &Error{}, "a1410101"},
		{"key that is a float", &Error{}, "a1f93c0001"},
		{"key that is a map", &Error{}, "a1a001"},
		{"reserved simple value", &Error{}, "a11863f800"},
		{"break without a beginning", &Done{}, "ff"},
	}
	for _, test := range refused {
		m := Message{Type: test.body.Type(), Payload: unhex(test.hex)}
		if err := m.Decode(test.body); err == nil {
			t.Errorf("%s: %.40s was accepted as %+v", test.why, test.hex, test.body)
		}
	}

	accepted := []struct {
		why  string
		hex  string
		want Body
	}{
		{"longer forms of numbers", "b90002 1801 1b0000000000000002 02 7a00000001 61", &Error{Code: CodeDisplaced, Text: "a"}},
		{"keys in another order", "a2 02 6161 01 02", &Error{Code: CodeDisplaced, Text: "a"}},
		{"null for a field", "a2 01 f6 02 6161", &Error{Text: "a"}},
		{"null for all fields", "f6", &Error{}},
		{"as many elements as allowed", "a1 01 991000" + strings.Repeat("40", 4096), &Offer{Keys: emptyKeys(4096)}},
		// Sizes of ids and pairs are the sender's duty.
		{"id too short", "a1 01 41ff", &Attached{ID: SessionID{0xff}}},
		{"id too long", "a1 01 51" + "000102030405060708090a0b0c0d0e0fff", &Attached{ID: testID}},
	}
	for _, test := range accepted {
		got := empty(test.want)
		m := Message{Type: got.Type(), Payload: unhex(test.hex)}
		if err := m.Decode(got); err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %.100v, %v; want %.100v", test.why, got, err, test.want)
		}
	}
}

func emptyKeys(n int) [][]byte {
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = []byte{}
	}
	return keys
}

// A peer that has shown nothing of itself must not have much memory taken.
func TestDecodeTakesLittleMemory(t *testing.T) {
	const most = 128 // bytes, for each that was sent: an element of one byte that is refused leaves an error
	array := "991000"
	fill := func(element string) string { return strings.Repeat(element, 4096) }
	tests := []struct {
		why  string
		body Body
		hex  string
	}{
		{"empty keys", &Hello{}, "a103" + array + fill("40")},
		{"keys that are null", &Hello{}, "a103" + array + fill("f6")},
		{"keys that are arrays", &Hello{}, "a103" + array + fill("80")},
		{"keys that are maps", &Hello{}, "a103" + array + fill("a0")},
		{"keys of numbers", &Hello{}, "a103" + array + fill("8400000000")},
		{"variables that are null", &Attach{}, "a106" + array + fill("f6")},
		{"empty variables", &Attach{}, "a106" + array + fill("80")},
		{"infos that are null", &Listing{}, "a101" + array + fill("f6")},
		{"unknown arrays", &Hello{}, "a11863" + array + fill("80")},
		{"unknown maps", &Hello{}, "a11863" + array + fill("a0")},
		{"a claim", &Hello{}, "a103" + "9affffffff"},
		{"a claim within the limits", &Hello{}, "a103" + array},
		{"a claim of bytes", &Ticket{}, "a101" + "5a7fffffff"},
	}
	for _, test := range tests {
		m := Message{Type: test.body.Type(), Payload: unhex(test.hex)}
		m.Decode(empty(test.body)) // what is kept for the next time is not counted
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := m.Decode(test.body)
		runtime.ReadMemStats(&after)
		taken := after.TotalAlloc - before.TotalAlloc
		if limit := uint64(most*len(m.Payload) + 4<<10); taken > limit {
			t.Errorf("%s: %d bytes taken for %d, want at most %d (%v)", test.why, taken, len(m.Payload), limit, err)
		}
	}
}

// An askedReader notes the most that was asked for at once.
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
		case err == ErrTooLong:
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

// What decodes can be encoded, to something that decodes to the same.
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
			if err == ErrTooLong {
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
