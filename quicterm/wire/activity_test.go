package wire

import (
	"strings"
	"testing"
)

// The text of the notice about a command that has ended: a change here is a change of the protocol.
func TestEndedGolden(t *testing.T) {
	for text, want := range map[string]Ended{
		"1700000000 2 make test": {Command: "make test", Status: 2, At: 1700000000},
		"1 -1 ":                  {Status: -1, At: 1},
	} {
		if got := want.String(); got != text {
			t.Errorf("%+v is %q, want %q", want, got, text)
		}
		if got, err := ParseEnded(text); err != nil || got != want {
			t.Errorf("%q is %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, bad := range []string{"", "1", "1 2", "x 2 make", "1 x make", "1 99999 make"} {
		if got, err := ParseEnded(bad); err == nil {
			t.Errorf("%q is %+v", bad, got)
		}
	}
	long := Ended{Command: strings.Repeat("\u00e9", MaxSummary), Status: 255, At: 1 << 62}
	if n := len(long.String()); n > 256 {
		t.Errorf("a notice of %d bytes", n)
	}
}

// A command that a peer names controls no terminal, however it comes.
func FuzzParseEnded(f *testing.F) {
	f.Add("1700000000 2 make test")
	f.Add("1 -1 \x1b]2;title\a")
	f.Fuzz(func(t *testing.T, text string) {
		e, err := ParseEnded(text)
		if err == nil && (e.Command != Printable(e.Command, MaxSummary) || len(e.String()) > 256) {
			t.Errorf("%q is %+v", text, e)
		}
	})
}

// An answer to who peeks has room for the longest texts.
func TestAttachedOfLongActivity(t *testing.T) {
	m, err := New(&Attached{Name: strings.Repeat("n", MaxName), Secret: make([]byte, 32), Activity: &Activity{
		Program: strings.Repeat("p", MaxName), Waits: WaitsPrompt, Since: 1 << 62, Dir: strings.Repeat("/", MaxDir),
		Last: &Ended{Command: strings.Repeat("c", MaxSummary), Status: 255, At: 1 << 62},
	}})
	if err != nil || len(m.Payload) > MaxAnswer/2 {
		t.Errorf("an answer of %d bytes, %v", len(m.Payload), err)
	}
}
