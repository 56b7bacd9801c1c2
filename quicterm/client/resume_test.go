package client

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// A name may stand for several machines with one host key, as in a cluster. One of them has
// the session, and a denial of another one does not end it.
func TestDenialOfOtherHost(t *testing.T) {
	home, other := netip.MustParseAddrPort("192.0.2.1:4433"), netip.MustParseAddrPort("192.0.2.2:4433")
	for _, test := range []struct {
		why   string
		from  netip.AddrPort
		named []netip.AddrPort
		gone  bool
		wait  bool
	}{
		{"the machine was restarted", home, []netip.AddrPort{home, other}, true, true},
		{"another machine of that name", other, []netip.AddrPort{other, home}, false, false},
		{"another machine, and the name stands only for it", other, []netip.AddrPort{other}, false, true},
	} {
		s := &Session{client: New(Config{}), attached: wire.Attached{Boot: "ours"}}
		from := responderAt(test.from, home, test.named)
		s.carrierEnded(&notFoundError{boot: "other"}, from)
		if s.over != test.gone || s.deniedSince.IsZero() == test.wait {
			t.Errorf("%s: over is %v, denied since %v", test.why, s.over, s.deniedSince)
		}
		s.deniedSince = time.Now().Add(-goneAfter - time.Second)
		s.carrierEnded(&notFoundError{boot: "other"}, from)
		if s.over != test.wait || s.over && !errors.Is(s.cause, ErrGone) {
			t.Errorf("%s, for minutes: over is %v, %v", test.why, s.over, s.cause)
		}
	}
}
