//go:build linux || darwin

package quicterm

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/wire"
)

var (
	office   = netip.MustParsePrefix("192.0.2.1/32")
	stranger = netip.MustParsePrefix("203.0.113.1/32")
)

// Sixteen clients in need behind one address, each trying four ways at once ten
// times a second, take each other's places, and all get in all the same.
func TestOfficeComesBack(t *testing.T) {
	a := newAdmissions(64)
	rng := rand.New(rand.NewPCG(1, 2))
	const clients, ways, trip = 16, 4, 100 * time.Millisecond
	now, in := today, make(map[int]bool)
	for len(in) < clients && now.Sub(today) < time.Minute {
		var through []int
		for _, attempt := range rng.Perm(clients * ways) {
			if client := attempt / ways; !in[client] && a.enter(now, office) == nil {
				through = append(through, client)
			}
		}
		now = now.Add(trip)
		for _, client := range through {
			in[client] = true
			a.leave(office)
		}
	}
	if d := now.Sub(today); d > time.Second {
		t.Errorf("it took %v until all were in", d)
	}
}

// One client in need is never refused for the number of its attempts.
func TestClientInNeed(t *testing.T) {
	a, l := newAdmissions(64), newLimiter[wire.SessionID](resumeRate, resumeBurst)
	try := func(now time.Time) {
		if err := a.enter(now, office); err != nil {
			t.Fatalf("after %v: %v", now.Sub(today), err)
		}
		a.leave(office)
		if !l.allow(now, wire.SessionID{1}) {
			t.Fatalf("after %v: the session's limit is reached", now.Sub(today))
		}
	}
	for range 64 {
		try(today)
	}
	for n := range 40 * 60 {
		try(today.Add(time.Duration(n) * time.Second / 40))
	}
}

// One source takes a quarter of all places, and leaves the others.
func TestOneSourceFloods(t *testing.T) {
	a := newAdmissions(64)
	var last error
	for range 300 {
		last = a.enter(today, stranger)
	}
	if a.total != 16 || !errors.Is(last, errSourceBusy) {
		t.Errorf("it has %d places, then %v", a.total, last)
	}
	if !a.doubtful(today, stranger) || a.doubtful(today, office) {
		t.Error("not that source alone has to show that its address is its own")
	}
	if err := a.enter(today, office); err != nil {
		t.Errorf("another source: %v", err)
	}
	for range 300 {
		last = a.enter(today, stranger)
	}
	if !errors.Is(last, errTooOften) {
		t.Errorf("after 600 attempts at once: %v", last)
	}
	for range 16 {
		a.leave(stranger)
	}
	a.leave(office)
	if a.total != 0 || len(a.sources) != 0 {
		t.Errorf("%d places of %d sources are left when all are gone", a.total, len(a.sources))
	}
	if !a.doubtful(today, stranger) {
		t.Error("a source that has tried too often is believed to be itself")
	}
}

// Who resumes a session too often is not answered, and the holder not asked.
func TestResumesTooOften(t *testing.T) {
	h := newHost(t)
	for range resumeBurst {
		h.server.resumes.allow(time.Now().Add(time.Second), h.attached.ID)
	}
	c, _, _ := h.dial(carrier.DialQUICEarly, false)
	h.say(c, nil, h.resume(1))
	if m, err := wire.Read(c, wire.MaxMessage); err == nil {
		t.Errorf("answered with message %d", m.Type)
	}
	h.log.await(t, errTooOften.Error(), 1)
	time.Sleep(1100 * time.Millisecond)
	c, _, _ = h.dial(carrier.DialQUICEarly, false)
	h.say(c, nil, h.resume(1)) // the number was not used
	h.want("later", c, wire.TypeResumed)
}

// A source without tokens is refused before TLS.
func TestConnectionsTooOften(t *testing.T) {
	h := newHost(t)
	for range sourceBurst {
		h.server.admissions.attempts.allow(time.Now().Add(time.Second), netip.MustParsePrefix("127.0.0.1/32"))
	}
	_, err := carrier.DialQUIC(context.Background(), h.listen(), h.addr, h.tls)
	var refused *quic.TransportError
	if !errors.As(err, &refused) || refused.ErrorCode != quic.ConnectionRefused {
		t.Errorf("%v, want a refusal", err)
	}
}
