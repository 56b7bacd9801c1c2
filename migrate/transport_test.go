package migrate

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

// Candidates for the same way as wifi and boundLTE, by TCP, and for SSH.
var (
	wifiTCP = over(TCP, wifi)
	lteTCP  = over(TCP, boundLTE)
	viaSSH  = Candidate{Transport: SSH}
)

func over(t Transport, c Candidate) Candidate {
	c.Transport = t
	return c
}

// started begins a story with a carrier of a candidate, and the given ones up.
func started(t *testing.T, first Candidate, change func(*Config), candidates ...Candidate) *story {
	s := newStory(t)
	if change != nil {
		change(&s.manager.cfg)
	}
	s.tell(Started{first})
	s.tell(Heard{ID: 0, RTT: 100 * time.Millisecond})
	s.tell(NetworkChanged{candidates})
	s.wantState("the server was heard", Live)
	return s
}

// dialed returns when candidates of a transport were dialed until the end of d. All dials fail
// at their timeout.
func (s *story) dialed(d time.Duration, t Transport) (at []time.Duration) {
	begun := s.now
	for s.now.Before(begun.Add(d)) {
		for _, a := range s.withoutPings() {
			if dial, ok := a.(Dial); ok && dial.Candidate.Transport == t {
				at = append(at, s.now.Sub(begun))
			}
		}
		for id := range s.manager.paths {
			s.tell(Heard{ID: id})
		}
		s.pass(100 * time.Millisecond)
	}
	return at
}

// After a sleep, a server that is reached by TCP alone is dialed at once, whatever was dialed before.
func TestWokeOverTCP(t *testing.T) {
	s := started(t, wifiTCP, nil, wifiTCP)
	s.tell(Unacked{s.now})
	s.pass(4900 * time.Millisecond)
	if dials := s.withoutPings(); len(dials) < 3 {
		t.Fatalf("the link is dead: did %v", dials)
	}
	var want []Action
	for _, id := range ordered(s.manager.dials) {
		want = append(want, Close{id})
	}
	s.tell(NetworkChanged{[]Candidate{wifiTCP}})
	s.tell(Woke{})
	s.wantWithoutPings("the machine woke", append(want, Dial{ID: s.manager.lastID, Candidate: wifiTCP})...)
	s.tell(Woke{})
	s.wantWithoutPings("the page is told twice")
}

func TestUDPBlockedInMidSession(t *testing.T) {
	s := started(t, wifi, nil, wifi, wifiTCP)
	s.typing(time.Second, 0)
	s.did = nil
	s.tell(Unacked{s.now})
	s.pass(249 * time.Millisecond)
	s.wantWithoutPings("an ack may take two round trips and 50 ms")
	s.pass(time.Millisecond)
	s.wantWithoutPings("QUIC is tried again first", Dial{ID: 1, Candidate: wifi})
	s.pass(250 * time.Millisecond)
	s.wantWithoutPings("twice", Dial{ID: 2, Candidate: wifi})
	s.pass(49 * time.Millisecond)
	s.wantWithoutPings("it may answer late")
	s.pass(time.Millisecond)
	s.wantWithoutPings("then TCP", Dial{ID: 3, Candidate: wifiTCP})
	s.pass(300 * time.Millisecond)
	s.did = nil
	s.tell(Heard{ID: 3, RTT: 100 * time.Millisecond})
	s.tell(Unacked{})
	s.wantState("TCP works", Live)
	s.wantWithoutPings("it replaces the path; dials of QUIC may still be answered", Close{0})
	s.typing(3*time.Second, 3)
	for _, a := range s.withoutPings() {
		if _, ok := a.(Abandon); !ok {
			t.Errorf("did %T%v, want the dials of QUIC to end", a, a)
		}
	}
	if n := len(s.manager.dials); n != 0 {
		t.Errorf("%d dials are left", n)
	}

	s.typing(time.Second)
	s.wantState("the TCP path is dead", Suspect)
	got := s.withoutPings()
	first := []Action{Dial{ID: s.manager.lastID - ID(dials(got)) + 1, Candidate: wifi}, Dial{ID: s.manager.lastID - ID(dials(got)) + 2, Candidate: wifiTCP}}
	if !slices.Equal(got[:2], first) {
		t.Errorf("did %v, want TCP to be dialed at once where it worked last", name(got))
	}
}

// A dial of QUIC that is answered after TCP takes over.
func TestQUICAnswersLate(t *testing.T) {
	s := started(t, wifi, nil, wifi, wifiTCP)
	s.tell(Down{0})
	s.pass(TCPDelay)
	s.wantWithoutPings("all are tried", Dial{ID: 1, Candidate: wifi}, Dial{ID: 2, Candidate: wifi}, Dial{ID: 3, Candidate: wifiTCP})
	s.tell(Heard{ID: 3, RTT: 0})
	s.pass(100 * time.Millisecond)
	s.tell(Heard{ID: 1, RTT: 0})
	s.wantWithoutPings("QUIC is better", Close{3}, Close{2})

	s.pass(time.Second)
	s.tell(Unacked{s.now})
	s.pass(600 * time.Millisecond)
	s.wantWithoutPings("suspicion", Dial{ID: 4, Candidate: wifi}, Dial{ID: 5, Candidate: wifi}, Dial{ID: 6, Candidate: wifiTCP})
	s.tell(Heard{ID: 1, RTT: 0})
	s.tell(Unacked{})
	s.tell(Heard{ID: 6, RTT: 0})
	s.wantWithoutPings("it works after all, and TCP is no better", Close{6})
}

// While input waits, TCP is dialed again and again too, at most as often as is of use.
func TestRoundsOfTCP(t *testing.T) {
	s := started(t, wifi, nil, append(slices.Clone(both), wifiTCP, lteTCP)...)
	s.tell(Down{0})
	s.tell(Unacked{s.now})
	n := 0
	for range 300 {
		s.pass(100 * time.Millisecond)
		for _, a := range s.withoutPings() {
			if d, ok := a.(Dial); ok && d.Candidate.Transport == TCP {
				n++
			}
		}
		if n := s.manager.count(TCP); n > 8 {
			t.Fatalf("%d dials of TCP at once", n)
		}
	}
	if n < 2*20 || n > 2*31 {
		t.Errorf("%d dials of TCP to two candidates in 30 s, want one a second to each", n)
	}
}

// Up from TCP: a dial of QUIC after 15 s, 30 s, … and then every 5 min.
func TestClimb(t *testing.T) {
	s := started(t, wifiTCP, nil, wifi, boundWifi, wifiTCP, boundLTE, lteTCP)
	var seconds []int
	for _, at := range s.dialed(30*time.Minute, QUIC) {
		seconds = append(seconds, int(at.Round(time.Second)/time.Second))
	}
	want := []int{15, 45, 105, 225, 465, 765, 1065, 1365, 1665}
	if !slices.Equal(seconds, want) {
		t.Errorf("dialed after %v s, want %v", seconds, want)
	}
	s.wantState("no dial is noticed", Live)
}

// The network may let UDP through now.
func TestClimbOnEvent(t *testing.T) {
	candidates := []Candidate{wifi, wifiTCP}
	s := started(t, wifiTCP, nil, candidates...)
	s.dialed(20*time.Minute, QUIC)
	s.tell(NetworkChanged{candidates})
	s.wantWithoutPings("an event is a reason to try", Dial{ID: s.manager.lastID, Candidate: wifi})
	var events int
	for range 100 {
		s.tell(NetworkChanged{candidates})
		events += len(s.dialed(time.Second, QUIC))
	}
	if events < 5 || events > 7 {
		t.Errorf("%d dials in 100 s of events that change nothing, want one every 15 s", events)
	}
	six := Candidate{Remote: netip.MustParseAddrPort("[2001:db8::1]:4433"), Interface: "wlan0", Source: netip.MustParseAddr("2001:db8::2")}
	s.pass(time.Second)
	s.did = nil
	s.tell(NetworkChanged{append(candidates, six, over(TCP, six))})
	s.wantWithoutPings("a change is one too", Dial{ID: s.manager.lastID, Candidate: wifi})
	s.tell(Heard{ID: s.manager.lastID, RTT: 0})
	s.wantState("QUIC works", Live)
	s.wantWithoutPings("and takes over", Close{0})
	s.pass(time.Hour)
	if n := dials(s.did); n > 0 && s.manager.state == Live {
		t.Errorf("%d dials beside a path of QUIC", n)
	}
}

// QUIC over an interface to avoid, or one that the system does not choose, is no way up.
func TestClimbKeepsInterface(t *testing.T) {
	s := started(t, wifiTCP, nil, wifiTCP, boundLTE, lteTCP)
	if n := len(s.dialed(time.Hour, QUIC)); n > 0 {
		t.Errorf("%d dials over the worse interface", n)
	}
	s = started(t, lteTCP, func(c *Config) { c.Avoid = []string{"wwan*"} }, lteTCP, boundLTE)
	if n := len(s.dialed(time.Minute, QUIC)); n != 2 {
		t.Errorf("%d dials over the only interface in a minute, want 2", n)
	}
}

// WiFi that lets only TCP through is better than an interface to avoid.
func TestTCPRatherThanAvoided(t *testing.T) {
	s := started(t, boundLTE, func(c *Config) { c.Avoid = []string{"wwan*"} }, wifi, wifiTCP, boundLTE, lteTCP)
	s.typing(holdDown, 0)
	s.wantWithoutPings("WiFi is back", Dial{ID: 1, Candidate: wifi})
	s.typing(3*time.Second, 0)
	s.wantWithoutPings("it drops UDP packets", Abandon{1}, Dial{ID: 2, Candidate: wifiTCP})
	s.tell(Heard{ID: 2, RTT: 0})
	s.wantWithoutPings("TCP works there", Close{0})
	s.typing(time.Minute, 2)
	for _, a := range s.withoutPings() {
		if d, ok := a.(Dial); ok && d.Candidate.Interface == "wwan0" {
			t.Errorf("dialed %+v", d)
		}
	}
}

// A TCP connection keeps its address when the system chooses another interface.
func TestInterfaceDownUnderTCP(t *testing.T) {
	s := started(t, wifiTCP, nil, wifi, boundWifi, wifiTCP, bound(wifiTCP), boundLTE, lteTCP)
	s.typing(time.Second, 0)
	s.did = nil
	s.tell(NetworkChanged{[]Candidate{lte, over(TCP, lte)}})
	s.wantState("its interface is gone", Moving)
	s.want("the other is dialed", Dial{ID: 1, Candidate: lte}, Ping{})
	s.pass(300 * time.Millisecond)
	s.wantWithoutPings("with TCP too", Dial{ID: 2, Candidate: lte}, Dial{ID: 3, Candidate: over(TCP, lte)})
	s.tell(Heard{ID: 3, RTT: 0})
	s.wantWithoutPings("TCP is what passes here as well", Close{0})
	if p := s.manager.Paths()[0]; p.Moved != 0 || p.Candidate != over(TCP, lte) {
		t.Errorf("the path is %+v", p)
	}
}

// One packet that TCP sends again is no reason to dial.
func TestLossUnderTCP(t *testing.T) {
	s := started(t, wifiTCP, nil, wifi, wifiTCP)
	s.tell(Unacked{s.now})
	s.pass(499 * time.Millisecond)
	s.wantState("the ack may take two round trips and 300 ms", Live)
	s.pass(time.Millisecond)
	s.wantState("but no longer", Suspect)
}

func TestStartsOnSSH(t *testing.T) {
	s := started(t, viaSSH, nil, viaSSH)
	s.pass(100 * time.Millisecond)
	s.wantWithoutPings("the address is not known")
	s.tell(NetworkChanged{[]Candidate{wifi, wifiTCP, viaSSH}})
	s.wantWithoutPings("now it is: QUIC is dialed at once", Dial{ID: 1, Candidate: wifi})
	s.pass(200 * time.Millisecond)
	s.tell(Heard{ID: 1, RTT: 100 * time.Millisecond})
	s.wantWithoutPings("it takes over, SSH waits to be sure", StandBy{0})
	s.typing(4*time.Second, 0, 1)
	s.wantWithoutPings("it may not last")
	s.typing(2*time.Second, 0, 1)
	s.wantWithoutPings("it does", Close{0})
}

// Where UDP is blocked, TCP takes over from SSH; where both are, the session stays on SSH.
func TestUpFromSSH(t *testing.T) {
	s := started(t, viaSSH, nil, wifi, wifiTCP, viaSSH)
	s.pass(300 * time.Millisecond)
	s.wantWithoutPings("TCP is dialed beside QUIC", Dial{ID: 1, Candidate: wifi}, Dial{ID: 2, Candidate: wifiTCP})
	s.tell(Heard{ID: 2, RTT: 0})
	s.wantWithoutPings("it takes over", StandBy{0})

	s = started(t, viaSSH, nil, wifi, wifiTCP, viaSSH)
	quic, tcp := len(s.dialed(time.Hour, QUIC)), 0
	s = started(t, viaSSH, nil, wifi, wifiTCP, viaSSH)
	tcp = len(s.dialed(time.Hour, TCP))
	if quic < 12 || quic > 18 || tcp != quic {
		t.Errorf("%d dials of QUIC and %d of TCP in an hour, want about one each in five minutes", quic, tcp)
	}
	s.wantState("none was noticed", Live)
}

// A path that replaced SSH and does not last is no loss.
func TestBackToSSH(t *testing.T) {
	s := started(t, viaSSH, nil, wifi, wifiTCP, viaSSH)
	s.tell(Heard{ID: 1, RTT: 0})
	s.typing(2*time.Second, 0, 1)
	s.did = nil
	s.typing(300*time.Millisecond, 0)
	s.tell(Unacked{s.now.Add(-260 * time.Millisecond)})
	s.wantState("the new path is dead, SSH is not", Live)
	s.wantWithoutPings("it is used again", Activate{0})
	s.tell(Unacked{})
	s.typing(6*time.Second, 0)
	s.wantWithoutPings("the dead path is closed", Close{1})
}

// A path that is to be closed proves that it works once, and not as often as it can.
func TestPingsOfReplacedPath(t *testing.T) {
	s := started(t, viaSSH, nil, wifi, viaSSH)
	s.tell(Heard{ID: 1, RTT: 0})
	pings := 0
	for begun := s.now; s.now.Sub(begun) < 4*time.Second; s.pass(time.Millisecond) {
		for _, a := range s.did {
			if a == (Ping{}) {
				pings++
			}
		}
		s.did = nil
		s.tell(Heard{ID: 0})
		s.tell(Heard{ID: 1})
	}
	if pings < 1 || pings > 5 {
		t.Errorf("%d pings in 4 s, want about one a second", pings)
	}
}

func TestFallToSSH(t *testing.T) {
	s := started(t, wifi, nil, wifi, wifiTCP, viaSSH)
	s.tell(Down{0})
	s.tell(Unacked{s.now})
	s.pass(dialTime - 1)
	if n := s.manager.count(SSH); n != 0 {
		t.Error("SSH was dialed before the others had time to answer")
	}
	s.did = nil
	s.pass(1)
	if n := s.manager.count(SSH); n != 1 {
		t.Error("SSH is not dialed")
	}
	ssh := s.manager.lastID
	s.did = nil
	s.pass(59 * time.Second)
	if slices.Contains(s.did, Action(Close{ssh})) || s.manager.count(SSH) != 1 {
		t.Error("SSH does not get a minute to log in")
	}
	s.tell(Heard{ID: ssh, RTT: 0})
	s.wantState("SSH works", Live)
	s.tell(Unacked{})

	s.did = nil
	s.tell(Down{ssh})
	if n := s.manager.count(SSH); n != 1 {
		t.Error("SSH worked last in this network, and is not dialed at once")
	}
	at := []time.Duration{0}
	begun := s.now
	for s.now.Sub(begun) < 3*time.Minute {
		for id, d := range s.manager.dials {
			if d.candidate.Transport == SSH {
				s.tell(Down{id}) // it cannot log in
			}
		}
		s.did = nil
		s.pass(100 * time.Millisecond)
		if s.manager.count(SSH) > 0 {
			at = append(at, s.now.Sub(begun).Round(time.Second))
		}
	}
	want := []time.Duration{0, 5 * time.Second, 15 * time.Second, 35 * time.Second, 75 * time.Second, 135 * time.Second}
	if !slices.Equal(at, want) {
		t.Errorf("SSH was dialed after %v, want %v", at, want)
	}
}

// A login that began in another network is given up, but not at each event.
func TestSSHInChangedNetwork(t *testing.T) {
	s := started(t, viaSSH, nil, wifi, wifiTCP, viaSSH)
	s.tell(Down{0})
	s.did = nil
	n := 0
	for i := range 3000 {
		candidates := []Candidate{wifi, wifiTCP, viaSSH}
		if i%2 == 0 {
			candidates = []Candidate{lte, over(TCP, lte), viaSSH}
		}
		s.tell(NetworkChanged{candidates})
		s.pass(10 * time.Millisecond)
		for _, a := range s.withoutPings() {
			if d, ok := a.(Dial); ok && d.Candidate.Transport == SSH {
				n++
			}
		}
	}
	if n < 5 || n > 7 {
		t.Errorf("%d dials of SSH in 30 s of 100 changes a second, want one every 5 s", n)
	}
}

// The network changes and SSH may have died with it: a ping tells.
func TestNetworkChangesUnderSSH(t *testing.T) {
	s := started(t, viaSSH, nil, wifi, wifiTCP, viaSSH)
	s.dialed(time.Minute, QUIC)
	s.did = nil
	s.tell(NetworkChanged{[]Candidate{lte, over(TCP, lte), viaSSH}})
	s.wantState("it may work", Live)
	s.want("QUIC is tried, and SSH pinged", Dial{ID: s.manager.lastID, Candidate: lte}, Ping{})
	s.pass(time.Second)
	s.wantState("it is dead", Suspect)
}
