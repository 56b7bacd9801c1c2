package terminal

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/wire"
)

func TestMessages(t *testing.T) {
	c := new(Config)
	since := time.Date(2026, 11, 22, 14, 3, 5, 0, time.Local)
	gap := client.Gap{From: 3, To: 7, Bytes: 12345}
	for _, test := range []struct{ got, want string }{
		{c.titleText(client.LinkState{State: client.Offline, Since: since, Attempts: 2}), "qt: no contact since 14:03:05, reconnecting (attempt 2)"},
		{c.titleText(client.LinkState{State: client.Moving, Since: since}), "qt: no contact since 14:03:05"},
		{c.titleText(client.LinkState{State: client.Live, Backlog: 12_345_678}), "qt: catching up, 12.3 MB left"},
		{GapText(gap, true, false), "12345 bytes of output skipped (frames 3 to 7)"},
		{GapText(gap, false, false), "12345 bytes of output lost, the server has kept no more (frames 3 to 7)"},
		{GapText(gap, false, true), "12345 bytes of output left out, this client was too far behind (frames 3 to 7)"},
		{endedText(wire.Ended{Command: "make test", Status: 2, At: since.Unix()}, since.Add(time.Hour)), "make test: exit 2, 14:03"},
		{endedText(wire.Ended{Status: -1, At: since.Unix()}, since.Add(24*time.Hour)), "a command: ended, Nov 22 14:03"},
		{inputFullText(67_000_000), "the program does not read its input: 67.0 MB are waiting, further input is dropped"},
		{inputDroppedText(1500), "the program reads its input again; 1.5 kB were dropped"},
	} {
		if test.got != test.want {
			t.Errorf("%q, want %q", test.got, test.want)
		}
	}
}

// The help fits into a narrow window.
func TestHelpIsNarrow(t *testing.T) {
	forwards := func(context.Context, string) string { return "" }
	paste := func(context.Context, func(string)) (string, error) { return "", nil }
	for _, role := range []wire.Role{wire.RoleWriter, wire.RoleWatch} {
		for line := range strings.Lines(helpText(Config{Role: role, Forwards: forwards, Paste: paste}, '~')) {
			if len(strings.TrimSpace(line)) >= 60 {
				t.Errorf("%q", line)
			}
		}
	}
}
