//go:build linux || darwin

package sshd

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

// traceOf is what sshd says with -ddd of a configuration with a Match block.
func traceOf(block string) string {
	return "debug2: load_server_config: done config len = 112\n" +
		"debug3: checking syntax for 'Match all'\n" +
		"debug3: checking syntax for 'Match " + block + "'\n" +
		"debug3: checking match for '" + block + "' user jo host :: addr :: laddr :: lport 22\n"
}

func TestPlacedBlock(t *testing.T) {
	for block, want := range map[string]bool{
		"User jo": false, "Group wheel,address": false, "all": false, "User host": true,
		"Address 10.0.0.0/8": true, "address=10.0.0.0/8": true, "User jo Address *,!10.0.0.0/8": true, `"LocalPort" 22`: true,
		"Host *.example": true, "LocalAddress ::1": true, "RDomain x": true, "User a\tADDRESS ::1": true,
	} {
		if got, read := placedBlock(traceOf(block)); (got != "") != want || !read {
			t.Errorf("Match %s: %q, %t", block, got, read)
		}
	}
	if _, read := placedBlock("usage: sshd\n"); read {
		t.Error("it is known that there is no block, and nothing was said of any")
	}
}

// A client without an address gets in where no rule is about addresses, and nowhere else.
func TestClientWithoutAddress(t *testing.T) {
	unplaced := login("jo", 1, "10.0.0.1")
	unplaced.Client, unplaced.Server = netip.Addr{}, netip.Addr{}
	for _, test := range []struct {
		rule    string
		refused bool
	}{
		{"allowusers jo", false}, {"allowusers al@10.0.0.0/8\nallowusers jo", false}, {"allowusers jo@*", true}, {"allowusers jo@10.0.0.0/8", true},
		{"denyusers al", false}, {"denyusers jo", true}, {"denyusers jo@10.0.0.0/8", true}, {"denyusers al@10.0.0.0/8", false},
	} {
		p := parse(t, test.rule)
		if err := p.Admit(t.Context(), unplaced, ""); errors.Is(err, ErrRefused) != test.refused || err != nil && !test.refused {
			t.Errorf("%s: %v", test.rule, err)
		}
	}
	for block, refused := range map[string]bool{"User jo": false, "Address 10.0.0.0/8": true} {
		trace := strings.ReplaceAll(traceOf(block), "'", `'\''`)
		d, _ := fake(t, "settings; printf '%s' '"+trace+"' >&2")
		if _, err := d.Ask(t.Context(), unplaced, ownNothing); errors.Is(err, ErrRefused) != refused || err != nil && !refused {
			t.Errorf("Match %s: %v", block, err)
		}
	}
	d, _ := fake(t, "settings")
	if _, err := d.Ask(t.Context(), unplaced, ownNothing); !errors.Is(err, ErrRefused) {
		t.Errorf("of an sshd that tells nothing of its blocks: %v", err)
	}
}
