package wire

import (
	"bytes"
	"math"
	"testing"
)

var goldenHints = []struct {
	hint             Hint
	number, received uint64
	hex              string
}{
	{Hint{}, 1, 1, "01 00 01 00 0000"},
	{Hint{Out: 300, In: 20, Terminal: Canonical | Echo | UsualKeys, Context: 0xbeef}, 130, 22, "8201 ac02 02 83 beef"},
	{Hint{Out: math.MaxUint64, Terminal: 0xff, Context: 0xffff}, math.MaxUint64, math.MaxUint64,
		"ffffffffffffffffff01 ffffffffffffffffff01 ffffffffffffffffff01 ff ffff"},
}

func TestHintGolden(t *testing.T) {
	for _, g := range goldenHints {
		b := g.hint.Append(nil, g.number, g.received)
		if want := unhex(g.hex); !bytes.Equal(b, want) {
			t.Errorf("%+v is encoded as %x, want %x", g.hint, b, want)
		}
		if len(b) > MaxHint {
			t.Errorf("%+v takes %d bytes, more than MaxHint", g.hint, len(b))
		}
		for _, more := range []string{"", "more"} {
			got, number, err := ParseHint(append(bytes.Clone(b), more...), g.received)
			if err != nil || got != g.hint || number != g.number {
				t.Errorf("%x is parsed as %+v, number %d, %v", b, got, number, err)
			}
		}
		for n := range b {
			if got, _, err := ParseHint(b[:n], g.received); err == nil {
				t.Errorf("the first %d bytes of %x are taken for %+v", n, b, got)
			}
		}
	}
}

// Bytes that make no sense are no hint: a later version may have put something else there.
func TestHintNonsense(t *testing.T) {
	for why, bad := range map[string]string{
		"no number":                        "00 05 01 00 0000",
		"input that the ack does not name": "01 05 00 00 0000",
		"input before the first":           "01 05 08 00 0000",
	} {
		if h, _, err := ParseHint(unhex(bad), 7); err == nil {
			t.Errorf("%s: %s is taken for %+v", why, bad, h)
		}
	}
}

func TestTerminalFlagsGolden(t *testing.T) {
	for i, f := range []TerminalFlags{Canonical, Echo, EchoErase, EchoControl, Signals, Shell, Extended, UsualKeys} {
		if f != 1<<i {
			t.Errorf("flag %d is %#x", i, f)
		}
	}
}

func TestSecret(t *testing.T) {
	for f, want := range map[TerminalFlags]bool{
		Canonical: true, Canonical | EchoErase | Signals: true,
		0: false, Echo: false, Canonical | Echo: false,
	} {
		if f.Secret() != want {
			t.Errorf("%#x is secret: %v", f, f.Secret())
		}
	}
}

func FuzzHint(f *testing.F) {
	for _, g := range goldenHints {
		f.Add(unhex(g.hex), g.received)
	}
	f.Fuzz(func(t *testing.T, b []byte, received uint64) {
		h, number, err := ParseHint(b, received)
		if err != nil {
			return
		}
		if h.In >= received {
			t.Errorf("%x is of input %d, with %d received", b, h.In, received)
		}
		again, n, err := ParseHint(h.Append(nil, number, received), received)
		if err != nil || again != h || n != number {
			t.Errorf("%+v is parsed as %+v when it is encoded again", h, again)
		}
	})
}
