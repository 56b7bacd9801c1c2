//go:build linux || darwin

package access

import (
	"bytes"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
)

// Sealed verdicts count for the Offer that they are about, for a moment, and what takes many bytes is not sealed.
func TestSealedVerdicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSealer()
		o := privsep.Offer{Attempt: 1, User: "ann", Keys: [][]byte{{1}, {2}}}
		verdicts := []auth.Verdict{{Refused: auth.ErrNotAuthorized}, {Allowed: &auth.Permissions{Command: "date", NoPTY: true}}}
		o.Sealed = s.seal(&o, verdicts)
		if bytes.Contains(o.Sealed, []byte("date")) {
			t.Error("the network half can read what is sealed")
		}
		opened := func(change func(o *privsep.Offer)) []*auth.Permissions {
			changed := o
			changed.Sealed = bytes.Clone(o.Sealed)
			change(&changed)
			return s.open(&changed)
		}
		got := opened(func(*privsep.Offer) {})
		if len(got) != 2 || got[0] != nil || got[1].Command != "date" || !got[1].NoPTY {
			t.Fatalf("sealed are %v", got)
		}
		d := &Decider{sealer: s} // it can ask nobody
		if _, err := d.Allowed(t.Context(), nil, &o, 0); !errors.Is(err, errRefused) {
			t.Errorf("a key that was refused: %v", err)
		}
		for why, change := range map[string]func(o *privsep.Offer){
			"another connection": func(o *privsep.Offer) { o.Attempt++ },
			"another account":    func(o *privsep.Offer) { o.User = "bob" },
			"another address":    func(o *privsep.Offer) { o.Path.Client = netip.MustParseAddrPort("192.0.2.1:1") },
			"other keys":         func(o *privsep.Offer) { o.Keys = [][]byte{{2}, {1}} },
			"fewer tries":        func(o *privsep.Offer) { o.Earlier++ },
			"a changed bit":      func(o *privsep.Offer) { o.Sealed[len(o.Sealed)/2] ^= 1 },
			"nothing sealed":     func(o *privsep.Offer) { o.Sealed = nil },
			"another monitor":    func(o *privsep.Offer) { other := newSealer(); o.Sealed = other.seal(o, verdicts) },
		} {
			if opened(change) != nil {
				t.Errorf("%s: verdicts count", why)
			}
		}
		long := []auth.Verdict{{Allowed: &auth.Permissions{Command: strings.Repeat("x", maxSealed)}}}
		if s.seal(&o, long) != nil || s.seal(&o, slices.Repeat(verdicts, 1000)) != nil {
			t.Error("much is sealed")
		}
		time.Sleep(verdictsTime)
		if opened(func(*privsep.Offer) {}) != nil {
			t.Error("old verdicts count")
		}
	})
}
