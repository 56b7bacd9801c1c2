//go:build linux || darwin

package server

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/quota"
	"github.com/quicterm/quicterm/quicterm/wire"
)

var today = time.Unix(1_900_000_000, 0)

const places = 256

var (
	office   = netip.MustParseAddr("192.0.2.1")
	attacker = netip.MustParseAddr("203.0.113.1")
)

// bot returns address number n of an attacker who has many.
func bot(n int) netip.Addr { return netip.AddrFrom4([4]byte{198, 51, byte(n >> 8), byte(n)}) }

// flood lets n clients of each address connect, and stay silent. It closes those that are
// evicted.
func flood(u *unauthenticated, now time.Time, n int, addrs ...netip.Addr) (refused error) {
	for range n {
		for _, addr := range addrs {
			if _, err := u.add(now, addr); err != nil {
				refused = err
			}
			closeEvicted(u)
		}
	}
	return refused
}

func closeEvicted(u *unauthenticated) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closing = quota.NewPlaces(maxClosing)
}

func bots(n int) (addrs []netip.Addr) {
	for i := range n {
		addrs = append(addrs, bot(i))
	}
	return addrs
}

// mustAdd lets a client connect.
func mustAdd(t *testing.T, u *unauthenticated, now time.Time, addr netip.Addr) *pending {
	t.Helper()
	p, err := u.add(now, addr)
	if err != nil {
		t.Fatalf("a client of %v: %v", addr, err)
	}
	return p
}

// Sixteen clients behind one address lose their paths at once. Each dials four times at
// once, ten times a second. They compete for the rate, and all get through within a second.
func TestClientsOfOneAddressResume(t *testing.T) {
	u := newUnauthenticated(places)
	rng := rand.New(rand.NewPCG(1, 2))
	const clients, dials, interval = 16, 4, 100 * time.Millisecond
	now, served := today, make(map[int]bool)
	for len(served) < clients && now.Sub(today) < time.Minute {
		for _, attempt := range rng.Perm(clients * dials) {
			if p, err := u.add(now, office); err == nil {
				u.speaks(now, p)
				u.remove(p)
				served[attempt/dials] = true
			}
		}
		now = now.Add(interval)
	}
	if d := now.Sub(today); d > time.Second {
		t.Errorf("took %v until all were served", d)
	}
}

// A single client that redials as fast as it may is never above a rate limit.
func TestRedialingClientIsWithinLimits(t *testing.T) {
	u := newUnauthenticated(places)
	for range 64 {
		u.remove(mustAdd(t, u, today, office))
	}
	for n := range 40 * 60 {
		u.remove(mustAdd(t, u, today.Add(time.Duration(n)*time.Second/40), office))
	}
}

// Fifty addresses with twenty silent clients each, and then many more, neither keep a
// client out nor take its place before it has logged in.
func TestFloodKeepsNobodyOut(t *testing.T) {
	u := newUnauthenticated(places)
	now := today
	flood(u, now, 20, bots(50)...)
	client := mustAdd(t, u, now, office)
	for range 100 {
		now = now.Add(100 * time.Millisecond)
		flood(u, now, 20, bots(50)...)
	}
	if client.evicted.Err() != nil {
		t.Error("a flood took the place of a client")
	}
	u.speaks(now, client)
	if client.evicted.Err() != nil || !client.In(u.others) {
		t.Error("the client has no place for its login")
	}
	if n := u.strangers.Len(); n > places/2 {
		t.Errorf("%d strangers have places", n)
	}
}

// Silent clients behind an address do not keep others behind it out: the oldest of them
// lose their places.
func TestFloodBehindOneAddress(t *testing.T) {
	u := newUnauthenticated(places)
	flood(u, today, 20, bots(50)...)
	var silent []*pending
	now := today.Add(2 * time.Second)
	for range 6 {
		now = now.Add(time.Millisecond)
		silent = append(silent, mustAdd(t, u, now, office))
		closeEvicted(u)
	}
	now = now.Add(time.Millisecond)
	client := mustAdd(t, u, now, office)
	for n, p := range silent {
		if lost := p.evicted.Err() != nil; lost != (n >= firstBurst) {
			t.Errorf("silent client %d has lost its place: %v; the first %d are protected", n, lost, firstBurst)
		}
	}
	now = now.Add(protectedTime)
	for range 10 { // the others have few places each: this is the source with most
		now = now.Add(time.Millisecond)
		flood(u, now, 1, bots(50)...)
		for n := range firstBurst - 1 {
			if silent[n].evicted.Err() == nil && silent[n+1].evicted.Err() != nil {
				t.Errorf("silent client %d lost its place before client %d, which is older", n+1, n)
			}
		}
	}
	if silent[0].evicted.Err() == nil || client.evicted.Err() != nil {
		t.Error("the oldest client has its place, or the newest has not")
	}
}

// All networks of a site count together.
func TestFloodOfOneSite(t *testing.T) {
	u := newUnauthenticated(places)
	network := func(n int) netip.Addr {
		return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 0, 1, byte(n >> 8), byte(n), 15: 1})
	}
	client := mustAdd(t, u, today, office)
	var last error
	for n := range 1000 {
		last = flood(u, today, 1, network(n))
	}
	if client.evicted.Err() != nil {
		t.Error("a site took the place of another one's only client")
	}
	if !errors.Is(last, errTooOften) {
		t.Errorf("a site that tries 1000 times at once: %v", last)
	}
	if !u.mustValidate(today, network(5000)) {
		t.Error("a client of a site that floods need not validate its address")
	}
}

// Strangers, from however many sources, take no place of a client that resumes or logs in,
// nor of one whose source is known.
func TestPlacesOfEachClass(t *testing.T) {
	u := newUnauthenticated(places)
	resuming, login := mustAdd(t, u, today, office), mustAdd(t, u, today, office)
	u.speaks(today, resuming)
	u.speaks(today, login)
	u.prove(mustAdd(t, u, today, office))
	regular := mustAdd(t, u, today, office)
	for n := range 5000 {
		flood(u, today.Add(time.Duration(n)*10*time.Millisecond), 1, bot(n))
	}
	for what, p := range map[string]*pending{"resumes": resuming, "logs in": login, "comes from a known source": regular} {
		if p.evicted.Err() != nil {
			t.Errorf("strangers took the place of a client that %s", what)
		}
	}
	if n := u.strangers.Len(); n != places/2 {
		t.Errorf("%d strangers have places, want %d", n, places/2)
	}
}

// A person of a known source who takes a minute to log in keeps the place while strangers of many
// sources try, one at each.
func TestSlowLoginOfKnownSource(t *testing.T) {
	u, now := newUnauthenticated(60), today
	u.prove(mustAdd(t, u, now, clientAddr))
	person := mustAdd(t, u, now, clientAddr)
	u.speaks(now, person)
	for _, addr := range bots(200) {
		now = now.Add(50 * time.Millisecond)
		p := mustAdd(t, u, now, addr)
		u.speaks(now, p)
		closeEvicted(u)
	}
	if person.evicted.Err() != nil {
		t.Error("the person has lost the place")
	}
}

// A source where somebody has logged in takes no place of another one's only client, however fast it
// connects and however slow that client is: neither while they are silent nor while they log in.
func TestFloodOfProvenSource(t *testing.T) {
	for _, test := range []struct {
		speaks bool
		proven bool // the other source
	}{{false, true}, {true, true}, {true, false}} {
		u, now := newUnauthenticated(places), today
		u.prove(mustAdd(t, u, now, attacker))
		if test.proven {
			u.prove(mustAdd(t, u, now, office))
		}
		connect := func(addr netip.Addr) *pending {
			p := mustAdd(t, u, now, addr)
			if test.speaks {
				u.speaks(now, p)
			}
			return p
		}
		person := connect(office)
		for range 500 {
			now = now.Add(20 * time.Millisecond)
			connect(attacker)
			closeEvicted(u)
		}
		if person.evicted.Err() != nil {
			t.Errorf("%+v: the person has lost the place", test)
		}
	}
}

// Nor do sources where nobody has logged in, each with its first connections at once: fewer than there are
// places for logins, and so more clients than the person has.
func TestFloodOfFirstHellos(t *testing.T) {
	u, now := newUnauthenticated(places), today
	person := mustAdd(t, u, now, office)
	u.speaks(now, person)
	for range 3 {
		now = now.Add(firstBurst / firstRate * time.Second)
		for _, addr := range bots(places / 2 / 2) {
			for range firstBurst {
				u.speaks(now, mustAdd(t, u, now, addr))
				closeEvicted(u)
			}
		}
	}
	if person.evicted.Err() != nil {
		t.Error("the person has lost the place")
	}
}

// So does a person of an unknown source, once the account accepts a key.
func TestSlowLoginWithAcceptedKey(t *testing.T) {
	onHost(t, func(h *host) {
		h.limit(60)
		u, now := h.server.unauthenticated, time.Now()
		person := mustAdd(t, u, now, clientAddr)
		u.speaks(now, person)
		key, err := ssh.NewPublicKey(ed25519.PublicKey(make([]byte, ed25519.PublicKeySize)))
		if err != nil {
			t.Fatal(err)
		}
		user := selfName(t)
		h.server.Server.monitor = &privsep.Calls{Offer: func(_ context.Context, o *privsep.Offer) (*privsep.Verdicts, error) {
			return &privsep.Verdicts{Refused: make([]string, len(o.Keys))}, nil // the account accepts all keys
		}}
		unknown := &localConn{client: new(privsep.Local)}
		c := &conn{server: h.server.Server, guest: &guest{pending: person}, incoming: unknown, carrier: unknown}
		if _, err := c.accepted(t.Context(), &wire.Hello{User: user, Keys: [][]byte{key.Marshal()}}); err != nil {
			t.Fatal(err)
		}
		for _, addr := range bots(200) {
			now = now.Add(50 * time.Millisecond)
			u.speaks(now, mustAdd(t, u, now, addr))
			closeEvicted(u)
		}
		if person.evicted.Err() != nil {
			t.Error("the person has lost the place")
		}
	})
}

// Denied clients, which only have to read that, lose their places first.
func TestLeavingClientsGoFirst(t *testing.T) {
	u := newUnauthenticated(places)
	client := mustAdd(t, u, today, office)
	u.speaks(today, client)
	for n := range 1000 {
		now := today.Add(time.Duration(n+1) * 10 * time.Millisecond)
		p := mustAdd(t, u, now, bot(n))
		u.speaks(now, p)
		u.leave(p)
		closeEvicted(u)
	}
	if client.evicted.Err() != nil {
		t.Error("denied clients took the place of one that is not")
	}
}

// At most that many connections are accepted, whatever 50 sources do, and all the time
// others get in.
func TestTotalRate(t *testing.T) {
	u := newUnauthenticated(places)
	accepted, now := 0, today
	for step := range 100 {
		now = now.Add(100 * time.Millisecond)
		for _, addr := range bots(50) {
			for range 20 {
				if p, err := u.add(now, addr); err == nil {
					accepted++
					u.remove(p)
				}
			}
		}
		u.remove(mustAdd(t, u, now, netip.AddrFrom4([4]byte{10, 0, 0, byte(step)})))
		if !u.mustValidate(now, office) && now.Sub(today) > time.Second {
			t.Fatalf("after %v, a client need not validate its address", now.Sub(today))
		}
	}
	if limit := totalBurst + 10*totalRate; accepted > limit {
		t.Errorf("%d connections are accepted in 10 s, want at most %d", accepted, limit)
	}
}

// Nor are there more if the flood has any number of sources. When each has had its first connections,
// others get in.
func TestTotalRateOfManySources(t *testing.T) {
	u := newUnauthenticated(places)
	accepted, newcomers, now := 0, 0, today
	for second := range 20 {
		for step := range 20 {
			now = now.Add(50 * time.Millisecond)
			for n := range 100 { // 4 a second from each of 500
				if p, err := u.add(now, bot(n*5+step%5)); err == nil {
					accepted++
					u.remove(p)
				}
			}
			newcomer := netip.AddrFrom4([4]byte{10, 0, byte(second), byte(step)})
			if p, err := u.add(now, newcomer); err == nil && second >= 10 {
				newcomers++
				u.remove(p)
			}
		}
	}
	if limit := totalBurst + 20*totalRate; accepted > limit {
		t.Errorf("%d connections are accepted in 20 s, want at most %v", accepted, limit)
	}
	if newcomers < 100 {
		t.Errorf("of 200 first attempts of newcomers, %d succeed", newcomers)
	}
}

// Of a flood of packets that begin connections few are looked at, whichever sources they come from: all of those
// of a client that has not sent many, or that comes from where somebody has logged in.
func TestUnwantedPackets(t *testing.T) {
	u, now, looked := newUnauthenticated(places), today, 0
	u.prove(mustAdd(t, u, now, office))
	for second := range 10 {
		for step := range 20 {
			now = now.Add(50 * time.Millisecond)
			for n := range 200 { // 8 a second from each of 500
				if !u.unwanted(now, bot(n*5/2+step%5)) {
					looked++
				}
			}
			newcomer := netip.AddrFrom4([4]byte{10, 0, byte(second), byte(step)})
			for range 8 {
				if u.unwanted(now, newcomer) || u.unwanted(now, office) {
					t.Fatal("a packet of a newcomer or of a known client is dropped")
				}
			}
		}
	}
	limit := packetBurst + 500*sitePacketBurst + 10*(packetRate+500*sitePacketRate)
	if looked > limit {
		t.Errorf("%d of 40000 packets are looked at, want at most %d", looked, limit)
	}
}

// In a flood from forged addresses, of which 200 a second are a newcomer's own, its packets are looked at.
func TestForgedPackets(t *testing.T) {
	u, now := newUnauthenticated(places), today
	newcomer := netip.MustParseAddr("198.51.100.7")
	for second := range 20 {
		for step := range 20 {
			now = now.Add(50 * time.Millisecond)
			for n := range 100 {
				u.unwanted(now, netip.AddrFrom4([4]byte{10, byte(second), byte(step), byte(n)}))
			}
			for range 10 {
				u.unwanted(now, newcomer) // forged
			}
			if u.unwanted(now, newcomer) {
				t.Fatalf("a packet of the newcomer is dropped after %d.%02d s", second, step*5)
			}
		}
	}
}

// Connections that QUIC does not close yet are bounded for a site, and in total.
func TestConnectionsThatDoNotClose(t *testing.T) {
	u := newUnauthenticated(places)
	for _, addr := range bots(100) {
		for range 30 {
			u.add(today, addr)
		}
	}
	n := u.strangers.Len() + u.closing.Len()
	if n > places/2+maxClosing+100 {
		t.Errorf("%d connections are open", n)
	}
	later := today.Add(time.Second) // there are too many attempts at once
	if _, err := u.add(later, bot(0)); !errors.Is(err, errBusy) {
		t.Errorf("a source with connections that do not close: %v", err)
	}
	mustAdd(t, u, later, office)
}

// A source that floods must validate its address, and no other. When all have left,
// nothing is counted.
func TestSourceFloods(t *testing.T) {
	u := newUnauthenticated(places)
	var added []*pending
	for range 32 {
		added = append(added, mustAdd(t, u, today, attacker))
	}
	if !u.mustValidate(today, attacker) || u.mustValidate(today, office) {
		t.Error("not exactly that source must validate its address")
	}
	for _, p := range added {
		u.remove(p)
		u.remove(p)
	}
	if n := u.strangers.Len() + u.strangers.Count(quota.Source(attacker)); n != 0 {
		t.Errorf("%d clients are counted after all were removed", n)
	}
	if err := flood(u, today, 600, attacker); !errors.Is(err, errTooOften) {
		t.Errorf("after 600 attempts at once: %v", err)
	}
	closeEvicted(u)
	if !u.mustValidate(today, attacker) {
		t.Error("a source above its rate need not validate its address")
	}
}

// A client that sends resumes which the holder denies, as often as it can, neither keeps
// the session's client out nor reaches the holder for long.
func TestDeniedResumes(t *testing.T) {
	onHost(t, func(h *host) {
		attached := h.attach()
		forged := attached
		forged.Secret = make([]byte, len(attached.Secret))
		asks := h.holders.Asks()
		for n := range deniedResumes + 10 {
			c, _, _ := h.dialFrom(intruder, quic.DialEarly, false)
			h.send(c, resume(forged, uint64(n+1)))
			m, err := wire.Read(c, wire.MaxMessage)
			if n < deniedResumes && (err != nil || m.Type != wire.TypeDenied) {
				t.Fatalf("forged resume %d: %v, %v", n, m.Type, err)
			}
			c.Close()
		}
		h.log.await(t, errTooOften.Error(), 1)
		if n := h.holders.Asks() - asks; n > deniedResumes+5 {
			t.Errorf("the holder was asked %d times", n)
		}
		c, _, _ := h.dial(quic.DialEarly, false)
		h.send(c, resume(attached, 1))
		h.want("from another source", c, wire.TypeResumed)
	})
}

// Recorded resumes that are sent again, with the address of their client, do not keep that
// client out.
func TestReplaysFromForgedAddress(t *testing.T) {
	onHost(t, func(h *host) {
		attached := h.attach()
		var recorded [][]byte
		const resumes = deniedResumes + 20
		for n := range uint64(resumes) {
			c, tap, _ := h.dial(quic.DialEarly, false)
			h.send(c, resume(attached, n+1))
			h.want("recorded", c, wire.TypeResumed)
			c.Close()
			recorded = append(recorded, tap.packets()...)
		}
		time.Sleep(time.Minute) // until QUIC has forgotten the connections
		forger := h.listen()
		defer forger.Close()
		asks := h.holders.Asks()
		for _, packet := range recorded {
			forger.WriteTo(packet, serverNetAddr)
			time.Sleep(roundTrip / 10)
		}
		time.Sleep(roundTrip)
		if n := h.holders.Asks() - asks; n == 0 || n > replayBurst {
			t.Errorf("the holder was asked %d times", n)
		}
		c, _, _ := h.dial(quic.DialEarly, false)
		h.send(c, resume(attached, resumes+1))
		h.want("after the replays", c, wire.TypeResumed)
	})
}

// While many silent clients hold on, a resume takes two round trips: one validates the
// address. A login takes four.
func TestSilentFlood(t *testing.T) {
	onHost(t, func(h *host) {
		h.limit(128)
		attached := h.attach()
		for n := range 90 {
			h.dialSilent(netip.AddrFrom4([4]byte{10, 1, 0, byte(n % 50)}))
		}
		for n := range uint64(5) {
			start := time.Now()
			c, _, _ := h.dial(quic.DialEarly, false)
			h.send(c, resume(attached, n+1))
			h.want("a resume", c, wire.TypeResumed)
			if d := time.Since(start); d > 2*roundTrip+roundTrip/2 {
				t.Errorf("a resume took %v, want two round trips of %v", d, roundTrip)
			}
			start = time.Now()
			c, _, _ = h.dialFrom(stranger, quic.Dial, false)
			h.send(c, h.login(&wire.List{})...)
			h.want("a login", c, wire.TypeListing)
			if d := time.Since(start); d > 4*roundTrip+roundTrip/2 {
				t.Errorf("a login took %v, want at most four round trips of %v", d, roundTrip)
			}
		}
	})
}

// A client that is silent is closed after firstMessageTimeout, not auth_timeout.
func TestSilentClient(t *testing.T) {
	onHost(t, func(h *host) {
		c, _, _ := h.dial(quic.Dial, false)
		start := time.Now()
		<-c.Context().Done()
		if d := time.Since(start); d > firstMessageTimeout+roundTrip {
			t.Errorf("closed after %v, want %v", d, firstMessageTimeout)
		}
	})
}

// A client whose place another one gets learns that the server is busy.
func TestEvictedClientLearnsWhy(t *testing.T) {
	onHost(t, func(h *host) {
		h.limit(8)
		c, _, _ := h.dial(quic.Dial, false)
		for range 8 {
			h.dialSilent(clientAddr)
		}
		<-c.Context().Done()
		if err := context.Cause(c.Context()); !quic.Refused(err) {
			t.Errorf("%v, want a refusal", err)
		}
	})
}

// A source above its rate is refused before TLS.
func TestConnectionsTooOften(t *testing.T) {
	onHost(t, func(h *host) {
		later := time.Now().Add(time.Second) // or the bucket has a token after address validation
		for range sourceBurst {
			h.server.unauthenticated.sources.Allow(later, quota.Source(clientAddr))
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

// Logins to accounts that exist, that do not, and that have no keys are denied after the
// same time.
func TestDenialsTakeOneTime(t *testing.T) {
	onHost(t, func(h *host) {
		var first time.Duration
		for n, user := range []string{selfName(t), "no-such-account", "nobody"} {
			c, _, _ := h.dial(quic.Dial, false)
			start := time.Now()
			h.send(c, &wire.Hello{User: user, Keys: [][]byte{fmt.Append(nil, "key")}}, &wire.List{})
			h.want(user, c, wire.TypeDenied)
			d := time.Since(start)
			if n == 0 {
				first = d
			}
			if d != first || d < denyInterval {
				t.Errorf("%s: denied after %v, want %v", user, d, first)
			}
			c.Close()
		}
	})
}

// Who offers keys that no account accepts, and has more, is told the same for an account that exists and
// for one that does not.
func TestOfferWithoutKeysTellsNothing(t *testing.T) {
	onHost(t, func(h *host) {
		for _, user := range []string{selfName(t), "no-such-account", "nobody"} {
			c, _, _ := h.dial(quic.Dial, false)
			h.send(c, &wire.Hello{User: user, Keys: [][]byte{fmt.Append(nil, "key")}, More: true}, &wire.List{})
			m, err := wire.Read(c, wire.MaxMessage)
			var offer wire.Offer
			if err == nil {
				err = m.Decode(&offer)
			}
			if err != nil || !reflect.DeepEqual(offer, wire.Offer{}) {
				t.Errorf("%s: %+v, %v; want an empty offer", user, offer, err)
			}
			c.Close()
		}
	})
}

// Silent clients at more addresses than there are places, which try again and again, keep a client of
// another address neither from connecting nor from a place for the time that its first message takes.
// Only all of them at once can do that, for a moment: then its next attempt succeeds.
func TestFloodOfManySources(t *testing.T) {
	const sources, perSecond, handshake = 500, 1000, 300 * time.Millisecond
	u, now, n := newUnauthenticated(64), today, 0
	flood := func(d time.Duration) {
		for until := now.Add(d); now.Before(until); now = now.Add(time.Second / perSecond) {
			u.add(now, bot(n%sources))
			n++
			closeEvicted(u)
		}
	}
	flood(2 * time.Second)
	for i := range 12 {
		for attempt := 1; ; attempt++ {
			client := mustAdd(t, u, now, netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}))
			flood(handshake)
			u.remove(client)
			if client.evicted.Err() == nil {
				break
			}
			if attempt == 2 {
				t.Fatalf("client %d has lost its place %d times within %v", i, attempt, handshake)
			}
			flood(handshake)
		}
		flood(time.Second / 2)
	}
}
