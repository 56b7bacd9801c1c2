package wire

import (
	"bytes"
	"reflect"
	"slices"
	"testing"
	"time"
)

var goldenEntries = []struct {
	entry Entry
	hex   string
}{
	{Entry{Text: []byte{}, Keys: []byte{}}, "00000000000000000000000000000000 00 00000000 00 00"},
	{Entry{ID: EntryID(testID), Run: true, Wait: true, Enter: true, Within: 10 * time.Second, Text: []byte("ls"), Keys: []byte("\x03")},
		"000102030405060708090a0b0c0d0e0f 0b 00002710 02 6c73 01 03"},
}

func TestEntryGolden(t *testing.T) {
	for _, g := range goldenEntries {
		b := g.entry.Append(nil)
		if want := unhex(g.hex); !bytes.Equal(b, want) {
			t.Errorf("%+v is encoded as %x, want %x", g.entry, b, want)
		}
		if got, err := ParseEntry(append(bytes.Clone(b), "more"...)); err != nil || !reflect.DeepEqual(got, g.entry) {
			t.Errorf("%x is parsed as %+v, %v", b, got, err)
		}
		for n := range b {
			if got, err := ParseEntry(b[:n]); err == nil {
				t.Errorf("the first %d bytes of %x are parsed as %+v", n, b, got)
			}
		}
	}
	long := Entry{Text: make([]byte, MaxEntry), Keys: []byte("x")}
	if _, err := ParseEntry(long.Append(nil)); err == nil {
		t.Error("an entry that is too long is parsed")
	}
}

// The size of an entry with a secret does not show how long that is.
func TestSecretEntry(t *testing.T) {
	for _, secret := range []string{"", "hunter2", "correct horse battery staple"} {
		e := Entry{Secret: true, Enter: true, Text: []byte(secret), Keys: []byte{}}
		b := e.Append([]byte("before"))
		if len(b) != 6+256 || b[6+16] != 0x0c {
			t.Errorf("%q takes %d bytes, flags %#x", secret, len(b)-6, b[6+16])
		}
		if got, err := ParseEntry(b[6:]); err != nil || !reflect.DeepEqual(got, e) {
			t.Errorf("parsed as %+v, %v", got, err)
		}
	}
}

var goldenEntered = []struct {
	entered Entered
	hex     string
}{
	{Entered{}, "0000000000000000 0000000000000000 00 00 0000000000000000 00000000"},
	{Entered{Client: 3, Frame: 0x0102, Outcome: NoPaste, Again: true, Marked: true, Offset: 70000, Bytes: 9, After: "a@b"},
		"0000000000000003 0000000000000102 06 03 0000000000011170 00000009 614062"},
}

func TestEnteredGolden(t *testing.T) {
	for _, g := range goldenEntered {
		b := g.entered.Append(nil)
		if want := unhex(g.hex); !bytes.Equal(b, want) {
			t.Errorf("%+v is encoded as %x, want %x", g.entered, b, want)
		}
		if got, err := ParseEntered(b); err != nil || got != g.entered {
			t.Errorf("%x is parsed as %+v, %v", b, got, err)
		}
		for n := range 30 {
			if _, err := ParseEntered(b[:n]); err == nil {
				t.Errorf("the first %d bytes of %x are parsed", n, b)
			}
		}
	}
	outcomes := []Outcome{Typed, ShellBusy, OtherReads, OtherBusy, NotSecret, LongLine, NoPaste}
	if want := []Outcome{0, 1, 2, 3, 4, 5, 6}; !slices.Equal(outcomes, want) {
		t.Errorf("the outcomes are %d", outcomes)
	}
}

func TestTypistGolden(t *testing.T) {
	typist := Typist{Client: 3, Name: "a@b"}
	b := typist.Append(nil)
	if want := unhex("0000000000000003 614062"); !bytes.Equal(b, want) {
		t.Errorf("encoded as %x, want %x", b, want)
	}
	if got, err := ParseTypist(b); err != nil || got != typist {
		t.Errorf("parsed as %+v, %v", got, err)
	}
	for n := range 8 {
		if _, err := ParseTypist(b[:n]); err == nil {
			t.Errorf("its first %d bytes are parsed", n)
		}
	}
}

func FuzzEntry(f *testing.F) {
	for _, g := range goldenEntries {
		f.Add(unhex(g.hex))
	}
	for _, g := range goldenEntered {
		f.Add(unhex(g.hex))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if e, err := ParseEntry(b); err == nil {
			again, err := ParseEntry(e.Append(nil))
			if err != nil || !reflect.DeepEqual(again, e) {
				t.Errorf("%+v is parsed as %+v, %v", e, again, err)
			}
		}
		if e, err := ParseEntered(b); err == nil {
			again, err := ParseEntered(e.Append(nil))
			if err != nil || again != e {
				t.Errorf("%+v is parsed as %+v, %v", e, again, err)
			}
		}
	})
}
