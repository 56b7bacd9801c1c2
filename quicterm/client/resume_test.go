package client

import (
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/migrate"
)

// A name may stand for several machines with one host key, as in a cluster. One of them has
// the session, and a denial of another one does not end it.
func TestDenialOfOtherHost(t *testing.T) {
	home, other := netip.MustParseAddrPort("192.0.2.1:4433"), netip.MustParseAddrPort("192.0.2.2:4433")
	for _, test := range []struct {
		why       string
		from      netip.AddrPort
		named     []netip.AddrPort
		goneAfter time.Duration // 0 for never
	}{
		{"the machine was restarted", home, []netip.AddrPort{home, other}, confirmedAfter},
		{"another machine of that name", other, []netip.AddrPort{other, home}, 0},
		{"the tunnel, whatever machine that leads to", netip.AddrPort{}, []netip.AddrPort{home, other}, goneAfter + time.Second},
		{"another machine, and the name stands only for it", other, []netip.AddrPort{other}, goneAfter + time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &Session{client: New(Config{})}
			from := responderAt(test.from, home, test.named)
			for denied := time.Duration(0); denied < 10*time.Minute; denied += time.Second {
				s.carrierEnded(migrate.QUIC, &notFoundError{gone: true}, from)
				if gone := test.goneAfter > 0 && denied >= test.goneAfter; s.over != gone || gone && !errors.Is(s.cause, ErrGone) {
					t.Fatalf("%s, for %v: over is %v, %v", test.why, denied, s.over, s.cause)
				}
				time.Sleep(time.Second)
			}
		})
	}
}

// One answer that the machine was started anew is not enough: nor are several at once, or one
// that another answer contradicts.
func TestRebootIsConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Session{client: New(Config{})}
		answer := func(rebooted bool, want bool) {
			t.Helper()
			s.carrierEnded(migrate.QUIC, &notFoundError{rebooted}, sessionHost)
			if s.over != want {
				t.Errorf("over is %v, want %v", s.over, want)
			}
		}
		for range 5 {
			answer(true, false)
		}
		time.Sleep(confirmedAfter)
		answer(false, false)
		answer(true, false)
		time.Sleep(confirmedAfter)
		answer(true, true)
	})
}
