package wire

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"strings"
	"testing"

	"github.com/quicterm/quicterm/buffer"
)

// The numbers of types, streams and codes: a change here is a change of the protocol.
func TestTerminalNumbersGolden(t *testing.T) {
	for _, typ := range []struct {
		got, want buffer.Type
	}{
		{Stdout, 0x01}, {Stderr, 0x02}, {Stdin, 0x03}, {Resize, 0x04}, {Signal, 0x05},
		{EOF, 0x06}, {Closed, 0x07}, {Exit, 0x08}, {Skip, 0x09}, {Take, 0x0a}, {EntryFrame, 0x0b},
		{EnteredFrame, 0x0c}, {Happened, 0x0d}, {TypistFrame, 0x0e},
	} {
		if typ.got != typ.want {
			t.Errorf("type %#x, want %#x", typ.got, typ.want)
		}
	}
	notices := []byte{NoticeDisplaced, NoticeLeaving, NoticeReaderGone, NoticeJoined, NoticeLeft, NoticeEnding,
		NoticeRenamed, NoticeEnded, NoticeAppeared, NoticeWaits, NoticeFile}
	if want := []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13}; !bytes.Equal(notices, want) {
		t.Errorf("codes of notices are %v, want %v", notices, want)
	}
}

var goldenSizes = map[Size]string{
	{}: "0000000000000000",
	{Cols: 80, Rows: 24, XPixel: 640, YPixel: 384}:           "0050001802800180",
	{Cols: 65535, Rows: 65535, XPixel: 65535, YPixel: 65535}: "ffffffffffffffff",
}

func TestSizeGolden(t *testing.T) {
	for size, want := range goldenSizes {
		b := size.Append(nil)
		if got := hex.EncodeToString(b); got != want {
			t.Errorf("%+v is encoded as %s, want %s", size, got, want)
		}
		if got, err := ParseSize(append(b, "more"...)); err != nil || got != size {
			t.Errorf("%s is parsed as %+v, %v", want, got, err)
		}
		for n := range len(want) / 2 {
			if _, err := ParseSize(b[:n]); err == nil {
				t.Errorf("the first %d bytes of %s are parsed", n, want)
			}
		}
	}
}

func TestParseStream(t *testing.T) {
	for b, ok := range map[string]bool{"": false, "\x00": true, "\x01": true, "\x02more": true, "\x03": false,
		"\xff": false} {
		stream, err := ParseStream([]byte(b))
		if (err == nil) != ok {
			t.Errorf("%x: %v", b, err)
		}
		if ok && byte(stream) != b[0] {
			t.Errorf("%x is parsed as %d", b, stream)
		}
	}
}

func FuzzTerminalPayloads(f *testing.F) {
	f.Add([]byte{0, 80, 0, 24, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		ParseStream(b)
		if size, err := ParseSize(b); err == nil && !bytes.Equal(size.Append(nil), b[:8]) {
			t.Errorf("%x is parsed as %+v", b, size)
		}
		if s, rest, err := ParseSizing(b); err == nil && len(rest) > len(b)-17 {
			t.Errorf("%x is parsed as %+v and %x", b, s, rest)
		}
	})
}

func TestSnapshot(t *testing.T) {
	size := Size{Cols: 80, Rows: 24, XPixel: 640, YPixel: 384}
	s := Snapshot{Sizing: Sizing{Size: size, Owner: 258, Client: "a@x"}, Screen: []byte("$ ")}
	b := s.Append(nil)
	if want := unhex("0050 0018 0280 0180 0000000000000102 03 614078 2420"); !bytes.Equal(b, want) {
		t.Errorf("encoded as %x, want %x", b, want)
	}
	if got, err := ParseSnapshot(b); err != nil || !reflect.DeepEqual(got, s) {
		t.Errorf("parsed %+v, %v", got, err)
	}
	for n := range 20 {
		if got, err := ParseSnapshot(b[:n]); err == nil {
			t.Errorf("the first %d bytes are taken for %+v", n, got)
		}
	}
	s.Sizing.Client = strings.Repeat("a", 300) // which is cut, and not taken for the screen
	if got, err := ParseSnapshot(s.Append(nil)); err != nil || got.Sizing.Client != s.Sizing.Client[:MaxClient] ||
		string(got.Screen) != "$ " {
		t.Errorf("with a long name parsed %+v, %v", got, err)
	}
}

func TestPresence(t *testing.T) {
	p := Presence{Number: 17, Role: RoleWatch, Client: "ann@192.0.2.7"}
	if got := p.String(); got != "17 2 ann@192.0.2.7" {
		t.Errorf("text %q", got)
	}
	if got, err := ParsePresence(p.String()); err != nil || got != p {
		t.Errorf("parsed %+v, %v", got, err)
	}
	if got, err := ParsePresence("1 0 a b\x1b"); err != nil || got.Client != "a b?" {
		t.Errorf("parsed %+v, %v", got, err)
	}
	for _, bad := range []string{"", "1", "1 2", "x 2 a", "1 x a", "1 256 a", "-1 2 a", " 1 2 a"} {
		if got, err := ParsePresence(bad); err == nil {
			t.Errorf("%q is taken for %+v", bad, got)
		}
	}
}
