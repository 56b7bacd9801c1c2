package main

import (
	"bytes"
	"strings"
	"testing"

	"rsc.io/qr"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/web/link"
)

// A code has a light margin, and its modules are those of the link, in colours of its own. It fits into 80 columns.
func TestDrawQR(t *testing.T) {
	text := (&link.Link{
		Page: "https://a-long-name-of-a-server.department.example:8443/", HostKey: auth.HostID(bytes.Repeat([]byte{0xfb}, 32)),
		Seed: link.NewSeed(), User: strings.Repeat("u", 32), Host: "a-long-name-of-a-server", Session: strings.Repeat("s", 32),
	}).String()
	lines, err := drawQR(text)
	if err != nil {
		t.Fatal(err)
	}
	code, err := qr.Encode(text, qr.L)
	if err != nil {
		t.Fatal(err)
	}
	width := code.Size + 2*qrQuiet
	if width > 80 || len(lines) != (width+1)/2 {
		t.Errorf("%d columns and %d lines", width, len(lines))
	}
	for i, line := range lines {
		line, colours := strings.CutPrefix(line, blackOnWhite)
		line, reset := strings.CutSuffix(line, asBefore)
		cells := []rune(line)
		if !colours || !reset || len(cells) != width {
			t.Fatalf("line %d is %q", i, line)
		}
		for x, cell := range cells {
			upper, lower := code.Black(x-qrQuiet, 2*i-qrQuiet), code.Black(x-qrQuiet, 2*i+1-qrQuiet)
			if (cell == '▀' || cell == '█') != upper || (cell == '▄' || cell == '█') != lower {
				t.Errorf("line %d has %q at %d", i, cell, x)
			}
		}
	}
	if _, err := drawQR(strings.Repeat("x", 500)); err == nil {
		t.Error("a code that no terminal shows is drawn")
	}
}
