package wire

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

var testGrant = &Grant{Address: "127.0.0.1:4433", HostKey: []byte{0xfb, 0xff}, Ticket: []byte("ticket")}

// What a daemon prints: a change here is a change of the protocol.
const grantLine = `quicterm-grant {"address":"127.0.0.1:4433","host_key":"+/8=","ticket":"dGlja2V0"}`

func TestGrantLine(t *testing.T) {
	if line, err := testGrant.Line(); err != nil || line != grantLine {
		t.Errorf("Line() = %s, %v; want %s", line, err, grantLine)
	}
	largest := &Grant{
		Address: "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff%interface]:65535",
		HostKey: make([]byte, 4<<10), // of 32768 bits
		Ticket:  make([]byte, 32),
	}
	line, err := largest.Line()
	if err != nil {
		t.Fatal(err)
	}
	if g, err := ReadGrant(strings.NewReader(line)); err != nil || !reflect.DeepEqual(g, largest) {
		t.Errorf("the largest grant: %v", err)
	}
}

func TestReadGrant(t *testing.T) {
	motd := "Linux host 6.1\n\nYou have mail.\n"
	long := strings.Repeat("=", 3*maxGrantLine)
	tests := []struct {
		why, printed string
		ok           bool
	}{
		{"alone", grantLine + "\n", true},
		{"without an end", grantLine, true},
		{"with a carriage return", grantLine + "\r\n", true},
		{"with space around it", " \t" + grantLine + " \n", true},
		{"behind a motd", motd + grantLine + "\n", true},
		{"before something else", grantLine + "\n" + motd, true},
		{"behind a line that is too long", long + "\n" + grantLine + "\n", true},
		{"behind a line of just the limit", long[:maxGrantLine] + "\n" + grantLine + "\n", true},
		{"behind bytes that are no text", "\xff\xfe\x00\x1b[2J\n" + grantLine + "\n", true},
		{"with a field of a later version", strings.Replace(grantLine, "{", `{"later":[1],`, 1), true},
		{"the first of two", grantLine + "\nquicterm-grant {}\n", true},

		{"nothing", "", false},
		{"motd only", motd, false},
		{"not at a line's start", "echo " + grantLine + "\n", false},
		{"within a line that is too long", long + grantLine + "\n", false},
		{"where a part of such a line ends", long[:maxGrantLine] + grantLine + "\n", false},
		{"without a space", strings.Replace(grantLine, "-grant ", "-grant", 1), false},
		{"no JSON", "quicterm-grant yes\n" + grantLine, false},
		{"JSON that is cut off", grantLine[:len(grantLine)-1] + "\n", false},
		{"something behind the JSON", grantLine + ";\n", false},
		{"no base64", `quicterm-grant {"ticket":"?"}`, false},
		{"longer than a grant can be", `quicterm-grant {"address":"` + long + `"}`, false},
	}
	for _, test := range tests {
		for _, r := range []io.Reader{
			strings.NewReader(test.printed),
			iotest.OneByteReader(strings.NewReader(test.printed)),
			iotest.DataErrReader(strings.NewReader(test.printed)),
		} {
			g, err := ReadGrant(r)
			if test.ok && (err != nil || !reflect.DeepEqual(g, testGrant)) {
				t.Errorf("%s: %v, %v", test.why, g, err)
			}
			if !test.ok && err == nil {
				t.Errorf("%s: found %v", test.why, g)
			}
		}
	}
	for n := range grantLine {
		if g, err := ReadGrant(strings.NewReader(grantLine[:n])); err == nil {
			t.Errorf("the first %d bytes are the grant %v", n, g)
		}
	}
}

// A login that breaks off is told from one that prints no grant.
func TestReadGrantPassesErrorsOn(t *testing.T) {
	broken := errors.New("broken")
	for _, printed := range []string{"", "motd\n", strings.Repeat("=", 3*maxGrantLine)} {
		r := io.MultiReader(strings.NewReader(printed), iotest.ErrReader(broken))
		if _, err := ReadGrant(r); !errors.Is(err, broken) {
			t.Errorf("after %.10q: %v, want the reader's error", printed, err)
		}
	}
	if _, err := ReadGrant(new(bytes.Buffer)); errors.Is(err, io.EOF) || err == nil {
		t.Errorf("of nothing: %v, want an error for people", err)
	}
}

// Output without an end must not fill the memory: only a line's length is kept.
func TestReadGrantOfEndlessLine(t *testing.T) {
	r := &askedReader{Reader: io.LimitReader(endless{}, 1<<20)}
	if _, err := ReadGrant(r); err == nil || r.most > maxGrantLine {
		t.Errorf("%v, with room for %d bytes; want an error and at most %d", err, r.most, maxGrantLine)
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }
