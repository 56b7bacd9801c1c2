package demo

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/screen"
)

// A movie is XML of plain characters, has each content of a row once, and jumps only at changes.
func TestMovie(t *testing.T) {
	const cols, rows = 20, 3
	m := newMovie(cols, rows)
	s := screen.New(cols, rows, screen.Limits{})
	for i, output := range []string{
		"\x1b[1;31m<script>&amp\x1b[0m", // nothing of it is markup
		"\r\n\x1b[44mtwo  words\x1b[0m \x1b[4m_\x1b[0m\x1b[8mhidden\x1b[0m",
		"",
		"\x1b[3;1H日本\x1b[7m語",
		"\x1b[3;1H\x1b[0m\x1b[K",
	} {
		s.Write([]byte(output))
		m.show(time.Duration(i)*time.Second, s, "title\x01", "caption]]>")
	}
	var b bytes.Buffer
	if err := m.write(&b, time.Second); err != nil {
		t.Fatal(err)
	}
	image := b.String()
	for d := xml.NewDecoder(&b); ; {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, image)
		}
	}
	for _, bad := range []string{"<script", "hidden", "\x01"} {
		if strings.Contains(image, bad) {
			t.Errorf("the image has %q\n%s", bad, image)
		}
	}
	for want, times := range map[string]int{
		"&lt;script&gt;&amp;amp</text>":                   1,
		">two  words</text>":                              1,
		"animation-duration:5.000s":                       1,
		"@keyframes r1{0%{transform:translate(0px,0px)}}": 1,
		"@keyframes r3{0%{transform:translate(0px,0px)}60%{transform:translate(0px,-19px)}" +
			"80%{transform:translate(0px,0px)}}": 1,
		`textLength="36" lengthAdjust="spacingAndGlyphs">日本</text>`: 1,
		`<rect x="36" width="18" height="19" fill="#d8d8d8"/>` +
			`<text x="36" y="14" textLength="18" lengthAdjust="spacingAndGlyphs" style="fill:#`: 1,
	} {
		if got := strings.Count(image, want); got != times {
			t.Errorf("%q is there %d times, want %d", want, got, times)
		}
	}
	if t.Failed() {
		t.Log(image)
	}
}
