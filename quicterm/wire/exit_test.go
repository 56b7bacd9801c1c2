package wire

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"
)

var goldenExits = []struct {
	exit ExitStatus
	hex  string
}{
	{ExitStatus{}, "00"},
	{ExitStatus{Status: 129}, "81"},
	{ExitStatus{Status: 139, Reason: "killed by SIGSEGV", At: time.Unix(1700000000, 0)},
		"8b" + "000000006553f100" + "6b696c6c65642062792053494753454756"},
}

func TestExitStatusGolden(t *testing.T) {
	for _, g := range goldenExits {
		b := g.exit.Append(nil)
		if got := hex.EncodeToString(b); got != g.hex {
			t.Errorf("%+v is encoded as %s, want %s", g.exit, got, g.hex)
		}
		if got := ParseExitStatus(b); got != g.exit {
			t.Errorf("%s is parsed as %+v, want %+v", g.hex, got, g.exit)
		}
		for n := range len(b) {
			want := ExitStatus{Status: 255}
			if n > 0 {
				want.Status = g.exit.Status
			}
			if n > 9 {
				want.Reason, want.At = g.exit.Reason[:n-9], g.exit.At
			}
			if got := ParseExitStatus(b[:n]); got != want {
				t.Errorf("the first %d bytes of %s are parsed as %+v, want %+v", n, g.hex, got, want)
			}
		}
	}
}

// A reason cannot control the terminal that it is printed on, nor fill it.
func TestExitReasonIsPrintable(t *testing.T) {
	parse := func(reason string) ExitStatus {
		return ParseExitStatus([]byte("\x01\x00\x00\x00\x00\x00\x00\x00\x01" + reason))
	}
	for reason, want := range map[string]string{
		"\x1b]0;title\akilled\r\n by \u202eann\xff": "?]0;title?killed   by ?ann?",
		"ended by größe":                            "ended by größe",
		strings.Repeat("x", 1000):                   strings.Repeat("x", maxReason),
		strings.Repeat("x", maxReason-1) + "é":      strings.Repeat("x", maxReason-1),
	} {
		if got := parse(reason); got.Reason != want || !got.At.Equal(time.Unix(1, 0)) {
			t.Errorf("%q is parsed as %+v, want %q", reason, got, want)
		}
	}
	long := ExitStatus{Reason: strings.Repeat("x", 1000), At: time.Unix(1, 0)}
	if n := len(long.Append(nil)); n != MaxExit {
		t.Errorf("a long reason is encoded in %d bytes, want %d", n, MaxExit)
	}
}

func FuzzExitStatus(f *testing.F) {
	for _, g := range goldenExits {
		f.Add(g.exit.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e := ParseExitStatus(b)
		if got := ParseExitStatus(e.Append(nil)); got != e {
			t.Errorf("%+v is parsed as %+v when it is encoded again", e, got)
		}
	})
}
