package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// A session whose client has not been heard for longer than any keepalive is listed as silent.
func TestListOfSilentClient(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for ago, want := range map[time.Duration]string{
		maxQuiet:               "  attached  ",
		maxQuiet + time.Second: "  attached, silent for 41s  ",
	} {
		var b strings.Builder
		info := wire.Info{PTY: true, Phase: wire.PhaseAttached, Since: now.Unix() - 500, Heard: now.Add(-ago).Unix()}
		if err := printTable(&b, describe([]wire.Info{info}), now); err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(want).MatchString(b.String()) {
			t.Errorf("heard %v ago: want %q in\n%s", ago, want, b.String())
		}
	}
}

// A command without a terminal whose client was killed is not called attached, nor detached, which says that another
// client could attach.
func TestListOfPipe(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for _, test := range []struct {
		info wire.Info
		want string
	}{
		{wire.Info{Phase: wire.PhaseAttached, Heard: now.Unix() - 1}, "  attached  "},
		{wire.Info{Phase: wire.PhaseAttached, Heard: now.Unix() - 60}, "  client silent for 1m  "},
		{wire.Info{Phase: wire.PhaseDetached}, "  client gone  "},
		{wire.Info{Phase: wire.PhaseExited, Status: 3}, "  exited 3  "},
	} {
		var b strings.Builder
		if err := printTable(&b, describe([]wire.Info{test.info}), now); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), test.want) {
			t.Errorf("want %q in\n%s", test.want, b.String())
		}
	}
}
