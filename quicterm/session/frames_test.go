package session

import (
	"bytes"
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
	"stream": {
		parse: func(b []byte) (any, error) { return ParseStream(b) },
		make:  func(v any) []byte { return []byte{byte(v.(Stream))} },
	},
	"size": {
		parse: func(b []byte) (any, error) { return ParseSize(b) },
		make:  func(v any) []byte { return v.(Size).Append(nil) },
	},
	"notice": {
		parse: func(b []byte) (any, error) { return parseNotice(b) },
		make:  func(v any) []byte { return appendNotice(nil, v.(Notice).Code, v.(Notice).Text) },
	},
	"ack": {
		parse: func(b []byte) (any, error) { return parseAck(b) },
		make:  func(v any) []byte { return appendAck(nil, v.(Ack)) },
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
	{"stream", StreamStdin, "00"},
	{"stream", StreamStdout, "01"},
	{"stream", StreamStderr, "02"},
	{"size", Size{}, "0000 0000 0000 0000"},
	{"size", Size{Cols: 80, Rows: 24, XPixel: 640, YPixel: 384}, "0050 0018 0280 0180"},
	{"size", Size{math.MaxUint16, math.MaxUint16, math.MaxUint16, math.MaxUint16}, "ffff ffff ffff ffff"},
	{"notice", Notice{Displaced, "ann@::1"}, "01 616e6e403a3a31"},
	{"notice", Notice{Leaving, ""}, "02"},
	{"notice", Notice{99, "\xff\x00"}, "63 ff00"},
	{"notice", Notice{Displaced, strings.Repeat("a", maxNotice)}, "01" + strings.Repeat("61", maxNotice)},
	{"ack", Ack{Received: 1, Consumed: 1}, "01 00 00 00 00 00 00"},
	{"ack", Ack{Received: 300, Consumed: 298, Limit: 1 << 20, Highest: 299, Delay: 7 * time.Millisecond, Datagrams: 2, Backlog: 128}, "ac02 02 808040 ab02 07 02 8001"},
	{"ack", Ack{Received: most, Consumed: 1, Limit: most, Highest: most, Delay: maxAckDelay, Datagrams: most, Backlog: most},
		"ffffffffffffffffff01 feffffffffffffffff01 ffffffffffffffffff01 ffffffffffffffffff01" +
			"904e ffffffffffffffffff01 ffffffffffffffffff01"},
	{"gap", gapInfo{}, "00 00"},
	{"gap", gapInfo{next: 300, offset: 1 << 20}, "ac02 808040"},
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

// The text of a notice goes to its end. All others may be longer: later versions
// put more behind what is there now.
func TestPayloadsTruncatedAtEachByte(t *testing.T) {
	for _, g := range goldenPayloads {
		c, b := codecs[g.codec], unhex(g.hex)
		for n := range b {
			_, err := c.parse(b[:n])
			if ok := g.codec == "notice" && n > 0; ok != (err == nil) {
				t.Errorf("the first %d bytes of %s %x: %v", n, g.codec, b, err)
			}
		}
		if g.codec == "notice" {
			continue
		}
		if got, err := c.parse(append(b, "more"...)); err != nil || got != g.value {
			t.Errorf("%s %x with more behind it is parsed as %+v, %v; want %+v", g.codec, b, got, err, g.value)
		}
	}
}

func TestPayloadsRefused(t *testing.T) {
	endless := strings.Repeat("ff", 10) + "01" // a varint of more than 64 bits
	tests := []struct{ why, codec, hex string }{
		{"no such stream", "stream", "03"},
		{"no such stream", "stream", "ff"},
		{"text too long", "notice", "01" + strings.Repeat("61", maxNotice+1)},
		{"first frame missing is 0", "ack", "00 00 00 00"},
		{"all unconsumed, with frame 0", "ack", "05 05 00 00"},
		{"more unconsumed than received", "ack", "05 06 00 00"},
		{"more unconsumed than any number", "ack", "01 ffffffffffffffffff01 00 00"},
		{"received has more than 64 bits", "ack", endless + "00 00 00"},
		{"limit has more than 64 bits", "ack", "01 00 ffffffffffffffffff02 00"},
		{"highest has more than 64 bits", "ack", "01 00 00" + endless},
		{"next has more than 64 bits", "gap", endless + "00"},
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
	if a, err := parseAck(unhex("8100 8000 8080808000 818000 00 00 00")); err != nil || a != (Ack{Received: 1, Consumed: 1, Highest: 1}) {
		t.Errorf("parseAck = %+v, %v", a, err)
	}
	if g, err := parseGap(unhex("8300 8400")); err != nil || g != (gapInfo{next: 3, offset: 4}) {
		t.Errorf("parseGap = %+v, %v", g, err)
	}
}

func TestNoticeIsCut(t *testing.T) {
	b := appendNotice(nil, Displaced, strings.Repeat("a", maxNotice)+"b")
	want := Notice{Displaced, strings.Repeat("a", maxNotice)}
	if n, err := parseNotice(b); err != nil || n != want {
		t.Errorf("a notice that is too long came as %q, %v", n.Text, err)
	}
}

// maxAckBytes is what a datagram keeps free.
func TestLargestAck(t *testing.T) {
	if n := len(appendAck(nil, Ack{Received: most, Consumed: 1, Limit: most, Highest: most, Delay: maxAckDelay, Datagrams: most, Backlog: most})); n > maxAckBytes {
		t.Errorf("an ack takes %d bytes, more than %d", n, maxAckBytes)
	}
}

// The numbers of types and codes: a change here is a change of the protocol.
func TestFrameTypesGolden(t *testing.T) {
	types := []struct {
		got, want buffer.Type
		name      string
	}{
		{Stdout, 0x01, "Stdout"},
		{Stderr, 0x02, "Stderr"},
		{Stdin, 0x03, "Stdin"},
		{Resize, 0x04, "Resize"},
		{Signal, 0x05, "Signal"},
		{EOF, 0x06, "EOF"},
		{Closed, 0x07, "Closed"},
		{Exit, 0x08, "Exit"},
		{Unsequenced, 0x80, "Unsequenced"},
		{ack, 0x80, "ack"},
		{ping, 0x81, "ping"},
		{notice, 0x82, "notice"},
		{gap, 0x83, "gap"},
	}
	for _, typ := range types {
		if typ.got != typ.want {
			t.Errorf("%s is %#x, want %#x", typ.name, typ.got, typ.want)
		}
	}
	if Displaced != 1 || Leaving != 2 || ReaderGone != 3 {
		t.Errorf("codes of notices are %d, %d and %d, want 1, 2 and 3", Displaced, Leaving, ReaderGone)
	}
}

// What is parsed can be made, into something that is parsed the same.
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
