package main

import (
	"strings"
	"testing"

	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// What a lost session has left is printed with its scrollback, as text without control characters of the program.
func TestPrintLost(t *testing.T) {
	var out strings.Builder
	lost := &wire.Lost{Name: "work", Size: wire.Size{Cols: 20, Rows: 2}, Screen: []byte("one\r\ntwo\r\n\x1b]0;title\athree\x1b[5n")}
	if err := printLost(&out, "host", &options{}, lost); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "one\ntwo\nthree\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}

// The command that is printed starts the same command again, with the same options.
func TestStartCommand(t *testing.T) {
	for command, want := range map[string]string{
		"":               "qt connect -s work -p 2222 host",
		"make test":      "qt connect -t -s work -p 2222 host 'make test'",
		"it's\n\x1b\xff": `qt connect -t -s work -p 2222 host $'it\'s\n\x1b\xff'`,
	} {
		if got := startCommand("host", &options{Options: reach.Options{Port: 2222}}, &wire.Lost{Name: "work", Command: command}); got != want {
			t.Errorf("%q: %s, want %s", command, got, want)
		}
	}
}
