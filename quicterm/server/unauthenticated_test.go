//go:build linux || darwin

package server

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/quicterm/wire"
)

var (
	office   = netip.MustParsePrefix("192.0.2.1/32")
	attacker = netip.MustParsePrefix("203.0.113.1/32")
)

// Sixteen clients behind one address lose their paths at once. Each dials four times at
// once, ten times a second. They compete for the limits, and all get through within a
// second.
func TestClientsOfOneAddressResume(t *testing.T) {
	u := newUnauthenticated(64)
	rng := rand.New(rand.NewPCG(1, 2))
	const clients, dials, interval = 16, 4, 100 * time.Millisecond
	now, served := today, make(map[int]bool)
	for len(served) < clients && now.Sub(today) < time.Minute {
		var accepted []int
		for _, attempt := range rng.Perm(clients * dials) {
			if client := attempt / dials; !served[client] && u.add(now, office) == nil {
				accepted = append(accepted, client)
			}
		}
		now = now.Add(interval)
		for _, client := range accepted {
			served[client] = true
			u.remove(office)
		}
	}
	if d := now.Sub(today); d > time.Second {
		t.Errorf("took %v until all were served", d)
	}
}

// A single client that redials as fast as it may is never above a rate limit.
func TestRedialingClientIsWithinLimits(t *testing.T) {
	u, resumes := newUnauthenticated(64), newLimiter[wire.SessionID](resumeRate, resumeBurst)
	try := func(now time.Time) {
		if err := u.add(now, office); err != nil {
			t.Fatalf("after %v: %v", now.Sub(today), err)
		}
		u.remove(office)
		if !resumes.allow(now, wire.SessionID{1}) {
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

// A source that floods gets a quarter of the total limit, must validate its address, and
// does not affect others.
func TestSourceFloods(t *testing.T) {
	u := newUnauthenticated(64)
	var last error
	for range 300 {
		last = u.add(today, attacker)
	}
	if u.total != 16 || !errors.Is(last, errSourceBusy) {
		t.Errorf("%d clients are counted, then %v", u.total, last)
	}
	if !u.mustValidate(today, attacker) || u.mustValidate(today, office) {
		t.Error("not exactly that source must validate its address")
	}
	if err := u.add(today, office); err != nil {
		t.Errorf("another source: %v", err)
	}
	for range 300 {
		last = u.add(today, attacker)
	}
	if !errors.Is(last, errTooOften) {
		t.Errorf("after 600 attempts at once: %v", last)
	}
	for range 16 {
		u.remove(attacker)
	}
	u.remove(office)
	if u.total != 0 || len(u.sources) != 0 {
		t.Errorf("%d clients of %d sources are counted after all were removed", u.total, len(u.sources))
	}
	if !u.mustValidate(today, attacker) {
		t.Error("a source above its rate need not validate its address")
	}
}

// A session that is resumed too often gets no answer, and its holder is not asked.
func TestResumesTooOften(t *testing.T) {
	onHost(t, func(h *host) {
		attached := h.attach()
		later := time.Now().Add(roundTrip) // or the bucket has tokens by then
		for range resumeBurst {
			h.server.resumes.allow(later, attached.ID)
		}
		asks := h.holders.Asks()
		c, _, _ := h.dial(quic.DialEarly, false)
		h.send(c, nil, resume(attached, 1))
		if m, err := wire.Read(c, wire.MaxMessage); err == nil {
			t.Errorf("answered with message %d", m.Type)
		}
		h.log.await(t, errTooOften.Error(), 1)
		if n := h.holders.Asks() - asks; n != 0 {
			t.Errorf("the holder was asked %d times", n)
		}
		time.Sleep(100 * time.Millisecond)
		c, _, _ = h.dial(quic.DialEarly, false)
		h.send(c, nil, resume(attached, 1)) // the holder has not seen the number
		h.want("later", c, wire.TypeResumed)
	})
}

// A source above its rate is refused before TLS.
func TestConnectionsTooOften(t *testing.T) {
	onHost(t, func(h *host) {
		later := time.Now().Add(time.Second) // or the bucket has a token after address validation
		for range sourceBurst {
			h.server.unauthenticated.attempts.allow(later, netip.PrefixFrom(clientAddr, 32))
		}
		c, err := quic.Dial(context.Background(), h.listen(), serverAddr, h.tls)
		if err == nil {
			c.Close()
		}
		if !quic.Refused(err) {
			t.Errorf("%v, want a refusal", err)
		}
	})
}
