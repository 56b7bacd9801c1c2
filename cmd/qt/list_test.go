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
		info := wire.Info{Phase: wire.PhaseAttached, Since: now.Unix() - 500, Heard: now.Add(-ago).Unix()}
		if err := printTable(&b, []wire.Info{info}, now); err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(want).MatchString(b.String()) {
			t.Errorf("heard %v ago: want %q in\n%s", ago, want, b.String())
		}
	}
}
