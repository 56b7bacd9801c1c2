package wire

import (
	"reflect"
	"runtime"
	"strings"
	"testing"
)

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
		for n := range whole.Payload {
			if err := (Message{whole.Type, whole.Payload[:n]}).Decode(empty(g.body)); err == nil {
				t.Errorf("the first %d bytes of %T were accepted", n, g.body)
			}
		}
		if err := (Message{whole.Type, append(whole.Payload, 0)}).Decode(empty(g.body)); err == nil {
			t.Errorf("%T with a byte behind it was accepted", g.body)
		}
	}
}

// Later versions add fields. Any CBOR that the limits allow is accepted in them.
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
		for _, key := range []string{"182a", "18ff", "1903e8", "20", "6131"} {
			for _, value := range values {
				m := goldenMessage(t, g.hex)
				m.Payload = append(onePairMore(m.Payload), unhex(key+value)...)
				got := empty(g.body)
				if err := m.Decode(got); err != nil || !reflect.DeepEqual(got, g.body) {
					t.Errorf("%T with field %s: %s: %+v, %v", g.body, key, value, got, err)
				}
			}
		}
	}
}

// onePairMore returns a map with the length of one more pair.
func onePairMore(m []byte) []byte {
	switch m[0] {
	case 0xb7: // the length of 23 is the last one that is in the first byte
		return append([]byte{0xb8, 24}, m[1:]...)
	case 0xb8:
		m[1]++
	default:
		m[0]++
	}
	return m
}

// CBOR that our encoder never makes.
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
		{"bytes of indefinite length", &Token{}, "a1015f4161ff"},
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
		{"more bytes than there are", &Token{}, "a101" + "5affffffff" + "40"},
		{"more bytes than there can be", &Token{}, "a101" + "5bffffffffffffffff" + "40"},

		{"number too large", &Error{}, "a101190100"},
		{"number below zero", &Error{}, "a10120"},
		{"float for a number", &Error{}, "a101f93c00"},
		{"number for a bool", &Attach{}, "a10401"},
		{"bytes for text", &Error{}, "a1024161"},
		{"text for bytes", &Token{}, "a1016161"},
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
		{"longer forms of numbers", "b90002 1801 1b0000000000000002 02 7a00000001 61",
			&Error{Code: CodeDisplaced, Text: "a"}},
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

// A message of a peer that is not authenticated takes little memory.
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
		{"a claim of bytes", &Token{}, "a101" + "5a7fffffff"},
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
