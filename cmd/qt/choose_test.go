package main

import (
	"testing"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// A no reach.Declines, also where the name of a session begins so. A whole name is that session.
func TestNamedNo(t *testing.T) {
	infos := []wire.Info{{Name: "work"}, {Name: "notes"}}
	for answer, want := range map[string]*wire.Info{"": &infos[0], "not": &infos[1], "no": nil, "N": nil, "x": nil} {
		if got := named(infos, answer); got != want {
			t.Errorf("%q: %v, want %v", answer, got, want)
		}
	}
	infos[1].Name = "no"
	if got := named(infos, "no"); got != &infos[1] {
		t.Errorf("got %v, want the session of this name", got)
	}
}
