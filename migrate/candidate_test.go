package migrate

import (
	"net/netip"
	"testing"
)

// A log has words for candidates.
func TestCandidateInWords(t *testing.T) {
	c := Candidate{Transport: QUIC, Remote: netip.MustParseAddrPort("192.0.2.1:4433"), Interface: "eth0", Source: netip.MustParseAddr("198.51.100.2")}
	if got, want := c.String(), "quic to 192.0.2.1:4433 over eth0 from 198.51.100.2"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := (Candidate{Transport: SSH}).String(), "ssh"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
