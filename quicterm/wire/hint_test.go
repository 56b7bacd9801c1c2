package wire

import (
	"bytes"
	"math"
	"testing"
)

var goldenHints = []struct {
	hint             Hint
	level            uint8
	number, received uint64
	hex              string
}{
	{Hint{}, HintsPredict, 1, 1, "01 00 01 00 0000"},
	{Hint{Out: 300, In: 20, Terminal: Canonical | Echo | UsualKeys, Context: 0xbeef}, HintsPredict, 130, 22,
		"8201 ac02 02 83 beef"},
	{Hint{Out: math.MaxUint64, Terminal: 0xff, Context: 0xffff}, HintsPredict, math.MaxUint64, math.MaxUint64,
		"ffffffffffffffffff01 ffffffffffffffffff01 ffffffffffffffffff01 ff ffff"},
	{Hint{In: 1, Terminal: Echo, Reading: true, Taken: 300}, HintsProgram, 1, 302, "01 00 ad02 02 0000 01 02"},
	{Hint{Out: math.MaxUint64, Terminal: 0xff, Context: 0xffff}, HintsProgram, math.MaxUint64, math.MaxUint64,
		"ffffffffffffffffff01 ffffffffffffffffff01 ffffffffffffffffff01 ff ffff 00 ffffffffffffffffff01"},
}

func TestHintGolden(t *testing.T) {
	for _, g := range goldenHints {
		b := g.hint.Append(nil, g.level, g.number, g.received)
		if want := unhex(g.hex); !bytes.Equal(b, want) {
			t.Errorf("%+v is encoded as %x, want %x", g.hint, b, want)
		}
		if len(b) > MaxHint {
			t.Errorf("%+v takes %d bytes, more than MaxHint", g.hint, len(b))
		}
		for _, more := range []string{"", "\x00"} {
			got, number, err := ParseHint(append(bytes.Clone(b), more...), g.received)
			if err != nil || got != g.hint || number != g.number {
				t.Errorf("%x is parsed as %+v, number %d, %v", b, got, number, err)
			}
		}
		whole := g.hint
		whole.Reading, whole.Taken = false, 0
		least := len(whole.Append(nil, HintsPredict, g.number, g.received))
		for n := range b {
			if got, _, err := ParseHint(b[:n], g.received); (err == nil) != (n >= least) || err == nil && got != whole {
				t.Errorf("the first %d bytes of %x are taken for %+v, %v", n, b, got, err)
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

// What only a program is told is left out if it makes no sense.
func TestHintOfProgramNonsense(t *testing.T) {
	for why, bad := range map[string]string{
		"nothing taken":          "01 05 01 00 0000 01",
		"input not named":        "01 05 01 00 0000 01 00",
		"input before the first": "01 05 01 00 0000 01 08",
		"truncated":              "01 05 01 00 0000 01 80",
	} {
		if h, _, err := ParseHint(unhex(bad), 7); err != nil || h.Reading || h.Taken != 0 {
			t.Errorf("%s: %s is taken for %+v, %v", why, bad, h, err)
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
		if h.In >= received || h.Taken >= received {
			t.Errorf("%x is of input %d, with %d received", b, h.In, received)
		}
		again, n, err := ParseHint(h.Append(nil, HintsProgram, number, received), received)
		if err != nil || again != h || n != number {
			t.Errorf("%+v is parsed as %+v when it is encoded again", h, again)
		}
	})
}
