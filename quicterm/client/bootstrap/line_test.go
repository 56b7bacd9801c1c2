package bootstrap

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/quicterm/quicterm/quicterm/wire"
)

var testGrant = &wire.Grant{Address: "127.0.0.1:4433", HostKey: []byte{0xfb, 0xff}, Token: []byte("token")}

// A change of this line is a change of the protocol.
const grantLine = `quicterm-grant {"address":"127.0.0.1:4433","host_key":"+/8=","token":"dG9rZW4="}`

func TestLine(t *testing.T) {
	if line, err := Line(testGrant); err != nil || line != grantLine {
		t.Errorf("Line() = %s, %v; want %s", line, err, grantLine)
	}
	largest := &wire.Grant{
		Address: "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff%interface]:65535",
		HostKey: make([]byte, 4<<10), // of 32768 bits
		Token:   make([]byte, 32),
	}
	line, err := Line(largest)
	if err != nil {
		t.Fatal(err)
	}
	if g, err := ReadLine(strings.NewReader(line)); err != nil || !reflect.DeepEqual(g, largest) {
		t.Errorf("the largest grant: %v", err)
	}
}

func TestReadLine(t *testing.T) {
	motd := "Linux host 6.1\n\nYou have mail.\n"
	long := strings.Repeat("=", 3*maxLine)
	tests := []struct {
		why, printed string
		ok           bool
	}{
		{"alone", grantLine + "\n", true},
		{"without an end", grantLine, true},
		{"with a carriage return", grantLine + "\r\n", true},
		{"with space around it", " \t" + grantLine + " \n", true},
		{"after a motd", motd + grantLine + "\n", true},
		{"before a motd", grantLine + "\n" + motd, true},
		{"after a line that is too long", long + "\n" + grantLine + "\n", true},
		{"after a line of just the limit", long[:maxLine] + "\n" + grantLine + "\n", true},
		{"after bytes that are no text", "\xff\xfe\x00\x1b[2J\n" + grantLine + "\n", true},
		{"with a field of a later version", strings.Replace(grantLine, "{", `{"later":[1],`, 1), true},
		{"the first of two", grantLine + "\nquicterm-grant {}\n", true},

		{"nothing", "", false},
		{"motd only", motd, false},
		{"not at a line's start", "echo " + grantLine + "\n", false},
		{"within a line that is too long", long + grantLine + "\n", false},
		{"after the first part of such a line", long[:maxLine] + grantLine + "\n", false},
		{"without a space", strings.Replace(grantLine, "-grant ", "-grant", 1), false},
		{"no JSON", "quicterm-grant yes\n" + grantLine, false},
		{"JSON cut off", grantLine[:len(grantLine)-1] + "\n", false},
		{"text after the JSON", grantLine + ";\n", false},
		{"no base64", `quicterm-grant {"token":"?"}`, false},
		{"longer than a grant can be", `quicterm-grant {"address":"` + long + `"}`, false},
	}
	for _, test := range tests {
		for _, r := range []io.Reader{
			strings.NewReader(test.printed),
			iotest.OneByteReader(strings.NewReader(test.printed)),
			iotest.DataErrReader(strings.NewReader(test.printed)),
		} {
			g, err := ReadLine(r)
			if test.ok && (err != nil || !reflect.DeepEqual(g, testGrant)) {
				t.Errorf("%s: %v, %v", test.why, g, err)
			}
			if !test.ok && err == nil {
				t.Errorf("%s: found %v", test.why, g)
			}
		}
	}
	for n := range grantLine {
		if g, err := ReadLine(strings.NewReader(grantLine[:n])); err == nil {
			t.Errorf("the first %d bytes are the grant %v", n, g)
		}
	}
}

// A login that fails has another error than one that prints no grant.
func TestReadLinePassesErrorsOn(t *testing.T) {
	broken := errors.New("broken")
	for _, printed := range []string{"", "motd\n", strings.Repeat("=", 3*maxLine)} {
		r := io.MultiReader(strings.NewReader(printed), iotest.ErrReader(broken))
		if _, err := ReadLine(r); !errors.Is(err, broken) {
			t.Errorf("after %.10q: %v, want the reader's error", printed, err)
		}
	}
	if _, err := ReadLine(new(bytes.Buffer)); errors.Is(err, io.EOF) || err == nil {
		t.Errorf("of nothing: %v, want an error for people", err)
	}
}

// Output without an end must not fill the memory.
func TestReadLineOfEndlessLine(t *testing.T) {
	r := &countingReader{Reader: io.LimitReader(endless{}, 1<<20)}
	if _, err := ReadLine(r); err == nil || r.most > maxLine {
		t.Errorf("%v, with room for %d bytes; want an error and at most %d", err, r.most, maxLine)
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

// A countingReader records the largest number of bytes asked for at once.
type countingReader struct {
	io.Reader
	most int
}

func (r *countingReader) Read(b []byte) (int, error) {
	r.most = max(r.most, len(b))
	return r.Reader.Read(b)
}
