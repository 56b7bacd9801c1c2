package session

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/buffer"
)

// A codec is how the payload of a type of frames is parsed and made.
type codec struct {
	parse func([]byte) (any, error)
	make  func(any) []byte
}

var codecs = map[string]codec{
	"notice": {
		parse: func(b []byte) (any, error) { return parseNotice(b) },
		make:  func(v any) []byte { return appendNotice(nil, v.(Notice).Code, v.(Notice).Text) },
	},
	"ack": {
		parse: func(b []byte) (any, error) { a, _, err := parseAck(b); return a, err },
		make:  func(v any) []byte { return appendAck(nil, v.(ackInfo)) },
	},
	"aged": {
		parse: func(b []byte) (any, error) { return parseAged(b) },
		make:  func(v any) []byte { return binary.AppendUvarint(nil, v.(uint64)) },
	},
	"gap": {
		parse: func(b []byte) (any, error) { return parseGap(b) },
		make:  func(v any) []byte { return appendGap(nil, v.(gapInfo)) },
	},
}

const most = math.MaxUint64

// The payloads on the wire: a change here is a change of the protocol.
var goldenPayloads = []struct {
	codec string
	value any
	hex   string
}{
	{"notice", Notice{1, "ann@::1"}, "01 616e6e403a3a31"},
	{"notice", Notice{2, ""}, "02"},
	{"notice", Notice{99, "\xff\x00"}, "63 ff00"},
	{"notice", Notice{1, strings.Repeat("a", maxNotice)}, "01" + strings.Repeat("61", maxNotice)},
	{"ack", ackInfo{received: most, consumed: 1, windowEnd: most, highest: most, delay: maxReportedDelay, datagrams: most, backlog: most},
		"3f ffffffffffffffffff01 feffffffffffffffff01 ffffffffffffffffff01 ffffffffffffffffff01" +
			"904e ffffffffffffffffff01 ffffffffffffffffff01"},
	{"ack", ackInfo{received: 1, consumed: 1}, "00 01"},
	{"ack", ackInfo{received: 300, consumed: 300, highest: 299, delay: time.Millisecond, datagrams: 2}, "18 ac02 01 02"},
	{"ack", ackInfo{received: 300, consumed: 298, windowEnd: 1 << 20, delay: 7 * time.Millisecond, datagrams: 2, backlog: 128}, "3f ac02 02 808040 00 07 02 8001"},
	{"ack", ackInfo{received: 300, consumed: 300, highest: 299, limited: true}, "40 ac02"},
	{"aged", uint64(300), "ac02"},
	{"gap", gapInfo{}, "00 00"},
	{"gap", gapInfo{next: 300, offset: 1 << 20}, "ac02 808040"},
	{"gap", gapInfo{next: 300, offset: 1 << 20, snapshot: 300}, "ac02 808040 ac02"},
	{"gap", gapInfo{next: most, offset: most}, "ffffffffffffffffff01 ffffffffffffffffff01"},
}

func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

func TestPayloadsGolden(t *testing.T) {
	for _, g := range goldenPayloads {
		c, want := codecs[g.codec], unhex(g.hex)
		if got := c.make(g.value); !bytes.Equal(got, want) {
			t.Errorf("%s %+v is made %x, want %x", g.codec, g.value, got, want)
		}
		if got, err := c.parse(want); err != nil || got != g.value {
			t.Errorf("%s %x is parsed as %+v, %v; want %+v", g.codec, want, got, err, g.value)
		}
	}
}

// The text of a notice extends to its end. All others may be longer: later versions may
// add fields.
func TestPayloadsTruncatedAtEachByte(t *testing.T) {
	for _, g := range goldenPayloads {
		c, b := codecs[g.codec], unhex(g.hex)
		for n := range b {
			_, err := c.parse(b[:n])
			short := g.codec == "notice" && n > 0 || g.codec == "gap" && n == gapWithout(b)
			if short != (err == nil) {
				t.Errorf("the first %d bytes of %s %x: %v", n, g.codec, b, err)
			}
		}
		if g.codec == "notice" || g.codec == "gap" && gapWithout(b) == len(b) {
			continue
		}
		if got, err := c.parse(append(b, "more"...)); err != nil || got != g.value {
			t.Errorf("%s %x with more behind it is parsed as %+v, %v; want %+v", g.codec, b, got, err, g.value)
		}
	}
}

// gapWithout returns how long a gap is without the size of its snapshot.
func gapWithout(b []byte) int {
	_, next := binary.Uvarint(b)
	_, offset := binary.Uvarint(b[next:])
	return next + offset
}

func TestPayloadsRefused(t *testing.T) {
	endless := strings.Repeat("ff", 10) + "01" // a varint of more than 64 bits
	tests := []struct{ why, codec, hex string }{
		{"text too long", "notice", "01" + strings.Repeat("61", maxNotice+1)},
		{"more unconsumed than received", "ack", "01 05 06"},
		{"more unconsumed than any number", "ack", "01 01 ffffffffffffffffff01"},
		{"received has more than 64 bits", "ack", "00" + endless},
		{"limit has more than 64 bits", "ack", "02 01 ffffffffffffffffff02"},
		{"highest has more than 64 bits", "ack", "04 01" + endless},
		{"first frame missing is 0", "ack", "00 00"},
		{"all unconsumed, with frame 0", "ack", "01 05 05"},
		{"backlog has more than 64 bits", "ack", "20 01" + endless},
		{"next has more than 64 bits", "gap", endless + "00"},
		{"snapshot has more than 64 bits", "gap", "01 01" + endless},
		{"offset has more than 64 bits", "gap", "01" + endless},
	}
	for _, test := range tests {
		if v, err := codecs[test.codec].parse(unhex(test.hex)); err == nil {
			t.Errorf("%s: %s %s is parsed as %+v", test.why, test.codec, test.hex, v)
		}
	}
}

// A varint need not be in its shortest form.
func TestPayloadsLongVarints(t *testing.T) {
	if a, _, err := parseAck(unhex("07 8100 8000 8080808000 818000")); err != nil || a != (ackInfo{received: 1, consumed: 1, highest: 1}) {
		t.Errorf("parseAck = %+v, %v", a, err)
	}
	if g, err := parseGap(unhex("8300 8400")); err != nil || g != (gapInfo{next: 3, offset: 4}) {
		t.Errorf("parseGap = %+v, %v", g, err)
	}
}

func TestNoticeIsCut(t *testing.T) {
	b := appendNotice(nil, 1, strings.Repeat("a", maxNotice)+"b")
	want := Notice{1, strings.Repeat("a", maxNotice)}
	if n, err := parseNotice(b); err != nil || n != want {
		t.Errorf("a notice that is too long came as %q, %v", n.Text, err)
	}
}

// maxAckBytes is what a datagram keeps free.
func TestLargestAck(t *testing.T) {
	a := ackInfo{received: most, consumed: 1, windowEnd: most, highest: most, delay: maxReportedDelay, datagrams: most, backlog: most}
	if n := len(appendAck(nil, a)); n > maxAckBytes {
		t.Errorf("an ack takes %d bytes, more than %d", n, maxAckBytes)
	}
}

// The numbers of types: a change here is a change of the protocol.
func TestFrameTypesGolden(t *testing.T) {
	types := []struct {
		got, want buffer.Type
		name      string
	}{
		{Unsequenced, 0x80, "Unsequenced"},
		{ack, 0x80, "ack"},
		{ping, 0x81, "ping"},
		{notice, 0x82, "notice"},
		{gap, 0x83, "gap"},
		{Compressed, 0x85, "Compressed"},
		{aged, 0x86, "aged"},
		{snapshotPart, 0x87, "snapshotPart"},
		{role, 0x88, "role"},
	}
	for _, typ := range types {
		if typ.got != typ.want {
			t.Errorf("%s is %#x, want %#x", typ.name, typ.got, typ.want)
		}
	}
}

// Encoding what was parsed gives a payload that is parsed to the same.
func FuzzPayloads(f *testing.F) {
	for _, g := range goldenPayloads {
		f.Add(unhex(g.hex))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for name, c := range codecs {
			v, err := c.parse(b)
			if err != nil {
				continue
			}
			again := c.make(v)
			if got, err := c.parse(again); err != nil || got != v {
				t.Errorf("%s %x is parsed as %+v, and made into %x, which is parsed as %+v, %v", name, b, v, again, got, err)
			}
			if len(again) > len(b) {
				t.Errorf("%s %x is made into the longer %x", name, b, again)
			}
		}
	})
}
