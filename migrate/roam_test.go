package migrate

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// Candidates of a client with WiFi, which the system prefers, and LTE.
var (
	lte = Candidate{
		Remote:    wifi.Remote,
		Interface: "wwan0",
		Source:    netip.MustParseAddr("10.1.0.2"),
	}
	boundWifi = bound(wifi)
	boundLTE  = bound(lte)
	both      = []Candidate{wifi, boundWifi, boundLTE}
)

func bound(w Candidate) Candidate {
	w.Bound = true
	return w
}

// roaming begins a story with a carrier over WiFi, and LTE up.
func roaming(t *testing.T, change func(*Config)) *story {
	s := newStory(t)
	if change != nil {
		change(&s.manager.cfg)
	}
	s.tell(Started{wifi})
	s.tell(NetworkChanged{both})
	s.tell(Heard{ID: 0, RTT: 50 * time.Millisecond})
	s.wantState("the server was heard", Live)
	return s
}

// typing lets time pass while a key is typed every 20 ms, and the answers arrive on the given
// carriers.
func (s *story) typing(d time.Duration, answering ...ID) {
	s.t.Helper()
	for until := s.now.Add(d); s.now.Before(until); {
		s.tell(Traffic{})
		if len(answering) == 0 {
			if s.manager.unacked.IsZero() {
				s.tell(Unacked{s.now})
			}
		} else {
			s.tell(Unacked{})
		}
		for _, id := range answering {
			s.tell(Heard{ID: id, RTT: 0})
		}
		s.pass(20 * time.Millisecond)
	}
}

// withoutPings returns what was done since the last check, without the pings and knocks.
func (s *story) withoutPings() []Action {
	did := slices.DeleteFunc(s.did, func(a Action) bool {
		switch a.(type) {
		case Ping, Knock:
			return true
		}
		return false
	})
	s.did = nil
	return did
}

func (s *story) wantWithoutPings(why string, actions ...Action) {
	s.t.Helper()
	if did := s.withoutPings(); !slices.Equal(did, actions) {
		s.t.Errorf("%s: did %v %v, want %v %v", why, name(did), did, name(actions), actions)
	}
}

func TestInterfaceDown(t *testing.T) {
	s := roaming(t, nil)
	s.typing(time.Second, 0)
	s.did = nil
	s.tell(NetworkChanged{[]Candidate{lte, boundLTE}})
	s.wantState("the system has chosen another interface", Moving)
	s.want("the new candidate is dialed, and the old socket may follow", Dial{ID: 1, Candidate: lte}, Ping{})
	s.pass(60 * time.Millisecond)
	s.tell(Heard{ID: 1, RTT: 0})
	s.wantState("it has answered", Live)
	s.wantWithoutPings("then the old path is closed", Close{0})
}

func TestAddressReplaced(t *testing.T) {
	s := roaming(t, nil)
	other := wifi
	other.Source = netip.MustParseAddr("10.0.7.7")
	s.did = nil
	s.tell(NetworkChanged{[]Candidate{other, bound(other), boundLTE}})
	s.want("the interface is the same, its address is not", Dial{ID: 1, Candidate: other}, Ping{})
	s.pass(30 * time.Millisecond)
	s.tell(Heard{ID: 0, RTT: 0})
	s.wantState("the old connection has followed the address", Live)
	s.pass(30 * time.Millisecond)
	s.tell(Heard{ID: 1, RTT: 0})
	s.wantWithoutPings("the new one takes over all the same", Close{0})
}

func TestBlackHole(t *testing.T) {
	s := roaming(t, nil)
	s.typing(time.Second, 0)
	s.did = nil
	s.typing(240 * time.Millisecond)
	s.wantWithoutPings("an answer may take a while")
	s.typing(20 * time.Millisecond)
	s.wantState("nothing was heard of what was typed", Suspect)
	s.wantWithoutPings("WiFi is tried again first", Dial{ID: 1, Candidate: wifi})
	s.typing(60 * time.Millisecond)
	s.wantWithoutPings("and soon LTE", Dial{ID: 2, Candidate: boundLTE})
	s.tell(Heard{ID: 2, RTT: 0})
	s.wantState("LTE works", Live)
	s.wantWithoutPings("and is kept", Close{0}, Close{1})

	s.typing(29*time.Second, 2)
	s.wantWithoutPings("WiFi is not trusted for a while")
	s.typing(2*time.Second, 2)
	s.wantWithoutPings("then it is tried, for it may cost less", Dial{ID: 3, Candidate: wifi})
	s.typing(4*time.Second, 2)
	s.wantWithoutPings("in vain", Abandon{3})
	s.typing(55*time.Second, 2)
	s.wantWithoutPings("it is left alone for twice as long")
	s.typing(3*time.Second, 2)
	s.wantWithoutPings("and tried again", Dial{ID: 4, Candidate: wifi})
	s.tell(Heard{ID: 4, RTT: 0})
	s.wantWithoutPings("it is back", Close{2})
}

// No packet of the client arrives over WiFi, and so the server sends its own, which arrive,
// again and again.
func TestBlackHoleOneCandidate(t *testing.T) {
	s := roaming(t, nil)
	s.typing(time.Second, 0)
	s.did = nil
	heard := func(d time.Duration) {
		for until := s.now.Add(d); s.now.Before(until); s.pass(20 * time.Millisecond) {
			s.tell(Heard{ID: 0, RTT: 0})
		}
	}
	s.tell(Unacked{s.now})
	heard(480 * time.Millisecond)
	s.wantState("the answer may come behind what was heard", Live)
	s.wantWithoutPings("which takes time")
	heard(40 * time.Millisecond)
	s.wantState("but no longer than that", Suspect)
	s.wantWithoutPings("WiFi is tried again first", Dial{ID: 1, Candidate: wifi})
	heard(60 * time.Millisecond)
	s.wantWithoutPings("and soon LTE", Dial{ID: 2, Candidate: boundLTE})
	s.tell(Heard{ID: 2, RTT: 0})
	s.wantState("LTE works", Live)
	s.wantWithoutPings("and is kept, though WiFi is heard as well", Close{0}, Close{1})
	s.tell(Unacked{})
	s.typing(29*time.Second, 2)
	s.wantWithoutPings("WiFi is not trusted for a while")
}

// When WiFi fails soon after each return, returns become ever rarer.
func TestWeakNetworksDoNotFlap(t *testing.T) {
	s := roaming(t, nil)
	moves := 0
	on := ID(0)
	weak := time.Duration(0) // for how long WiFi has worked
	for hour := s.now.Add(time.Hour); s.now.Before(hour); {
		if s.manager.paths[on].candidate.Interface == "wlan0" && weak >= 10*time.Second {
			s.typing(100 * time.Millisecond)
		} else {
			s.typing(100*time.Millisecond, on)
		}
		weak += 100 * time.Millisecond
		for _, a := range s.withoutPings() {
			d, ok := a.(Dial)
			if !ok || s.manager.dials[d.ID] == nil || d.Candidate.Interface == "wlan0" && weak < 30*time.Second && weak >= 10*time.Second {
				continue
			}
			s.tell(Heard{ID: d.ID, RTT: 0})
			s.tell(Unacked{})
			if s.manager.paths[d.ID] != nil {
				on, weak = d.ID, 0
				moves++
			}
		}
	}
	if moves < 4 || moves > 20 {
		t.Errorf("moved %d times in an hour, want some, and few", moves)
	}
}

func TestNATForgets(t *testing.T) {
	s := roaming(t, nil)
	s.typing(time.Second, 0)
	s.did = nil
	s.typing(120 * time.Millisecond) // the server checks the new address
	s.typing(time.Second, 0)
	s.wantWithoutPings("no dial, only a wait")
}

func TestOutageWithoutEvent(t *testing.T) {
	s := roaming(t, nil)
	s.typing(time.Second, 0)
	s.typing(30 * time.Second)
	s.wantState("nothing works", Offline)
	for _, c := range []struct{ after, within time.Duration }{{0, 8 * time.Second}, {10 * time.Minute, 4 * time.Second}} {
		s.pass(c.after)
		s.did = nil
		s.pass(c.within)
		did := s.withoutPings()
		var to []Candidate
		for _, a := range did {
			if d, ok := a.(Dial); ok {
				to = append(to, d.Candidate)
			}
		}
		if len(to) != 2 || !slices.Contains(to, wifi) || !slices.Contains(to, boundLTE) {
			t.Errorf("dialed %v in %v, %v later, want both candidates in turn", to, c.within, c.after)
		}
	}
}

func TestOutageWithEvent(t *testing.T) {
	s := roaming(t, nil)
	s.tell(NetworkChanged{nil})
	s.wantState("there is no candidate", Moving)
	s.pass(10 * time.Minute)
	s.wantState("for long", Offline)
	s.did = nil
	s.tell(NetworkChanged{both})
	s.wantWithoutPings("there is one again", Dial{ID: 1, Candidate: wifi})
	s.tell(Heard{ID: 1, RTT: 0})
	s.wantState("and it works", Live)
}

func TestOtherFamily(t *testing.T) {
	s := roaming(t, nil)
	six := Candidate{Remote: netip.MustParseAddrPort("[2001:db8::1]:4433"), Interface: "wlan0", Source: netip.MustParseAddr("2001:db8::2")}
	s.did = nil
	s.tell(NetworkChanged{[]Candidate{six, bound(six)}})
	s.wantWithoutPings("there is only IPv6 now", Dial{ID: 1, Candidate: six})
	s.tell(Heard{ID: 1, RTT: 0})
	s.tell(NetworkChanged{[]Candidate{wifi, six}})
	s.tell(Heard{ID: 1, RTT: 0})
	s.did = nil
	s.tell(Unacked{s.now})
	s.pass(310 * time.Millisecond)
	s.wantWithoutPings("the address that worked last is tried first", Dial{ID: 2, Candidate: six}, Dial{ID: 3, Candidate: wifi})
}

func TestWoke(t *testing.T) {
	s := roaming(t, nil)
	s.did = nil
	s.tell(Woke{})
	s.wantState("the path may be gone", Suspect)
	s.want("the path is pinged, and another dialed", Dial{ID: 1, Candidate: wifi}, Ping{})
	s.tell(Heard{ID: 0, RTT: 0})
	s.wantState("it works", Live)
	s.typing(time.Minute, 0)
	s.wantWithoutPings("so nothing else is tried, and the attempt ends", Abandon{1})
}

func TestStandby(t *testing.T) {
	s := roaming(t, func(c *Config) { c.Paths = Standby })
	s.wantWithoutPings("a second path is opened over the other interface", Dial{ID: 1, Candidate: boundLTE, StandBy: true})
	s.tell(Heard{ID: 1, RTT: 0})
	s.typing(10*time.Second, 0, 1)
	s.wantWithoutPings("and kept")
	s.typing(260 * time.Millisecond)
	s.wantState("the first is suspect, the second works", Live)
	s.wantWithoutPings("it takes over without a handshake", Activate{1})
	s.typing(4*time.Second, 1)
	s.wantWithoutPings("the old one has time to prove itself")
	s.typing(2*time.Second, 1)
	s.wantWithoutPings("and is closed; another second path is dialed", Close{0}, Dial{ID: 2, Candidate: wifi, StandBy: true})
}

func TestRedundant(t *testing.T) {
	s := roaming(t, func(c *Config) { c.Paths = Redundant })
	s.wantWithoutPings("a second path is opened over the other interface", Dial{ID: 1, Candidate: boundLTE})
	s.tell(Heard{ID: 1, RTT: 0})
	s.typing(10*time.Second, 0, 1)
	s.want("both are used, and heard")
	s.typing(960*time.Millisecond, 1)
	s.want("one of them is silent")
	s.typing(2*time.Second, 1)
	s.wantState("the link is not affected", Live)
	s.want("but the path is pinged", Ping{Short: true}, Ping{}, Ping{})
	s.typing(5*time.Second, 1)
	if got := s.withoutPings(); !slices.Equal(got, []Action{Close{0}, Dial{ID: 2, Candidate: wifi}}) {
		t.Errorf("the silent one: did %v, want it to be replaced", got)
	}
	s.typing(time.Minute, 1)
	if n := dials(s.did); n < 3 || n > 8 {
		t.Errorf("%d attempts in a minute to get the second path again, want some, and ever fewer", n)
	}
}

func TestRedundantInterfaceDown(t *testing.T) {
	s := roaming(t, func(c *Config) { c.Paths = Redundant })
	s.pass(50 * time.Millisecond)
	s.tell(Heard{ID: 1, RTT: 0})
	s.typing(time.Second, 0, 1)
	s.did = nil
	s.tell(NetworkChanged{[]Candidate{lte, boundLTE}})
	s.typing(time.Second, 0, 1)
	s.wantState("the first path has moved to the other interface", Live)
	s.wantWithoutPings("both are used")
	s.typing(6*time.Second, 0, 1)
	s.wantWithoutPings("one path per interface is enough", Close{0})
	s.tell(NetworkChanged{both})
	s.wantWithoutPings("WiFi is back", Dial{ID: 2, Candidate: wifi})
}

// If one interface is left, the system chooses no other: bound and unbound sockets send the
// same way.
func TestOneInterfaceLeft(t *testing.T) {
	s := roaming(t, func(c *Config) { c.Paths = Redundant })
	s.tell(Heard{ID: 1, RTT: 0})
	s.did = nil
	s.tell(NetworkChanged{[]Candidate{lte}})
	s.wantState("the second path is what it was", Live)
	s.want("the first may have moved there", Ping{})
	s.typing(6*time.Second, 1)
	s.wantWithoutPings("it has not", Close{0})
}

func TestRedundantAvoids(t *testing.T) {
	s := roaming(t, func(c *Config) { c.Paths, c.Avoid = Redundant, []string{"wwan*"} })
	s.wantWithoutPings("LTE costs money")
	s.tell(NetworkChanged{[]Candidate{lte}})
	s.tell(Heard{ID: 1, RTT: 0})
	s.wantWithoutPings("it is all that there is", Dial{ID: 1, Candidate: lte}, Close{0})
	s.tell(NetworkChanged{[]Candidate{lte, boundWifi}})
	s.wantWithoutPings("WiFi is back", Dial{ID: 2, Candidate: boundWifi})
	s.tell(Heard{ID: 2, RTT: 0})
	s.typing(4*time.Second, 1, 2)
	s.wantWithoutPings("it may not last")
	s.typing(2*time.Second, 1, 2)
	s.wantWithoutPings("it does", Close{1})
}

// Some routers announce every few seconds what is known.
func TestSecondPathThatFailsIsTriedRarely(t *testing.T) {
	s := roaming(t, func(c *Config) { c.Paths = Standby })
	s.tell(NetworkChanged{both})
	s.did = nil
	for range 60 {
		s.tell(NetworkChanged{both})
		s.typing(10*time.Second, 0)
	}
	if n := dials(s.did); n > 15 {
		t.Errorf("%d attempts in ten minutes", n)
	}
}

// The server's machine answers, and the holder of the session is stopped.
func TestHolderStopped(t *testing.T) {
	s := roaming(t, nil)
	s.tell(Unacked{s.now})
	for range 120 {
		s.pass(time.Second)
		s.tell(Heard{ID: 0, RTT: 0})
	}
	s.did = nil
	for range 120 {
		s.pass(time.Second)
		s.tell(Heard{ID: 0, RTT: 0})
	}
	s.wantState("the path works", Live)
	s.wantWithoutPings("another would be no better")
	s.pass(45 * time.Second)
	s.wantState("now it does not", Offline)
}

func TestTypingAfterLongOutage(t *testing.T) {
	s := roaming(t, nil)
	s.tell(Down{0})
	s.tell(Unacked{s.now})
	s.pass(time.Hour)
	s.did = nil
	s.tell(Traffic{})
	s.pass(time.Second)
	if n := dials(s.did); n == 0 {
		t.Error("no attempt within a second of a key")
	}
	s.did = nil
	for range 1000 {
		s.tell(Traffic{})
		s.pass(10 * time.Millisecond)
	}
	if n := dials(s.did); n > 22 {
		t.Errorf("%d attempts in 10 s, want two a second", n)
	}
}

func TestAvoidAndPrefer(t *testing.T) {
	s := roaming(t, func(c *Config) { c.Avoid = []string{"wwan*"} })
	s.did = nil
	s.tell(Unacked{s.now})
	s.pass(450 * time.Millisecond)
	s.wantWithoutPings("LTE costs money", Dial{ID: 1, Candidate: wifi})
	s.pass(140 * time.Millisecond)
	s.wantWithoutPings("but is better than nothing", Dial{ID: 2, Candidate: wifi}, Dial{ID: 3, Candidate: boundLTE})

	s = roaming(t, func(c *Config) { c.Prefer = []string{"eth*", "ww*"} })
	s.did = nil
	s.typing(holdDown, 0)
	s.wantWithoutPings("LTE is to be preferred to WiFi, whatever the system thinks", Dial{ID: 1, Candidate: boundLTE})
	s.tell(Heard{ID: 1, RTT: 0})
	s.wantWithoutPings("so it is left", Close{0})
	s.typing(time.Minute, 1)
	s.wantWithoutPings("for good")
}

func TestFlappingInterfaces(t *testing.T) {
	s := roaming(t, nil)
	s.did = nil
	for i := range 1000 {
		candidates := both
		if i%2 == 0 {
			candidates = []Candidate{lte, boundLTE}
		}
		s.tell(NetworkChanged{candidates})
		s.pass(10 * time.Millisecond)
	}
	if n := dials(s.did); n > 250 {
		t.Errorf("%d attempts in 10 s of 100 changes a second, want no more than without them", n)
	}
	if n := len(s.manager.dials); n > MaxDials {
		t.Errorf("%d attempts at once", n)
	}
}

func TestHundredsOfInterfaces(t *testing.T) {
	s := roaming(t, nil)
	var candidates []Candidate
	for i := range 300 {
		w := boundLTE
		w.Interface = "veth" + string(rune('a'+i%26)) + string(rune('a'+i/26))
		candidates = append(candidates, w)
	}
	s.tell(NetworkChanged{append(candidates, both...)})
	s.did = nil
	s.tell(Down{0})
	s.tell(Unacked{s.now})
	s.pass(10 * time.Second)
	if n := dials(s.did); n > 250 {
		t.Errorf("%d attempts in 10 s, want no more than with few interfaces", n)
	}
	if s.did[0] != (Dial{ID: 1, Candidate: wifi}) {
		t.Errorf("began with %v, want the way of the system", s.did[0])
	}
}

// A path that takes long to answer is found, although others are dialed all the time: a knock
// shows that it works.
func TestSlowPath(t *testing.T) {
	s := roaming(t, nil)
	s.tell(Down{0})
	s.tell(Unacked{s.now})
	longest := time.Duration(0)
	for range 1000 {
		s.pass(20 * time.Millisecond)
		s.tell(Answered{boundLTE})
		for _, d := range s.manager.dials {
			longest = max(longest, s.now.Sub(d.since))
		}
	}
	if longest < limits[QUIC].timeout-100*time.Millisecond {
		t.Errorf("no attempt lived longer than %v, want one to have %v", longest, limits[QUIC].timeout)
	}
}

// Whatever happens, in any order: dials and paths stay few, no action is about a carrier that
// does not exist, and the link is never live without a path.
func FuzzManager(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed, uint8(seed%3))
	}
	six := Candidate{Remote: netip.MustParseAddrPort("[2001:db8::1]:4433"), Interface: "eth0", Source: netip.MustParseAddr("2001:db8::2")}
	networks := [][]Candidate{both, {lte, boundLTE}, nil, {six, bound(six)}, append(slices.Clone(both), six, bound(six)), {{Remote: wifi.Remote}},
		append(slices.Clone(both), wifiTCP, lteTCP, viaSSH), {lte, over(TCP, lte), viaSSH}, {viaSSH}}
	f.Fuzz(func(t *testing.T, seed uint64, paths uint8) {
		rng := rand.New(rand.NewPCG(seed, 0))
		s := newStory(t)
		s.manager.cfg.Paths = Paths(paths % 3)
		s.manager.cfg.Avoid = []string{"wwan*"}
		s.tell(Started{[]Candidate{wifi, wifiTCP, viaSSH}[rng.IntN(3)]})
		alive := map[ID]bool{0: true}
		for range 300 {
			any := ID(rng.Int64N(int64(s.manager.lastID) + 2))
			var e Event
			switch rng.IntN(11) {
			case 0:
				e = NetworkChanged{networks[rng.IntN(len(networks))]}
			case 1:
				e = Down{any}
				delete(alive, any)
			case 2, 3, 4:
				if alive[any] {
					e = Heard{ID: any, RTT: time.Duration(rng.IntN(500)) * time.Millisecond}
				}
			case 5:
				e = Unacked{s.now}
			case 6:
				e = Unacked{}
			case 7:
				e = Traffic{}
			case 8:
				e = Woke{}
			case 9:
				e = Starved{}
			}
			s.tell(e)
			s.pass(time.Duration(rng.IntN(2000)) * time.Millisecond)
			for _, a := range s.did {
				switch a := a.(type) {
				case Dial:
					if (a.Candidate.Transport == SSH) != (a.Candidate.Remote == netip.AddrPort{}) {
						t.Fatalf("dialed nowhere")
					}
					alive[a.ID] = true
				case Close:
					if !alive[a.ID] {
						t.Fatalf("closed %d, which is not there", a.ID)
					}
					delete(alive, a.ID)
				case Ping:
					if !alive[a.ID] {
						t.Fatalf("pinged %d, which is not there", a.ID)
					}
				case Activate:
					if !alive[a.ID] {
						t.Fatalf("activated %d, which is not there", a.ID)
					}
				case StandBy:
					if !alive[a.ID] {
						t.Fatalf("made %d stand by, which is not there", a.ID)
					}
				}
			}
			s.did = nil
			for transport, most := range limits {
				if n := s.manager.count(Transport(transport)); n > most.dials {
					t.Fatalf("%d dials of %v at once", n, Transport(transport))
				}
			}
			if n := len(s.manager.paths); n > 4 {
				t.Fatalf("%d paths", n)
			}
			if state, _ := s.manager.State(); state == Live && len(s.manager.paths) == 0 {
				t.Fatal("live without a path")
			}
		}
	})
}

// Paths that are accepted and end at once are dialed more and more seldom. One that lasted is replaced at once.
func TestPathsThatEndAtOnce(t *testing.T) {
	s := roaming(t, nil)
	s.pass(holdDown)
	// accept lets time pass in which each knock and each dial is answered, and each path ends.
	accept := func(d time.Duration) (dials int) {
		for until := s.now.Add(d); s.now.Before(until); s.pass(10 * time.Millisecond) {
			did := s.did
			s.did = nil
			for _, a := range did {
				switch a := a.(type) {
				case Knock:
					s.tell(Answered(a))
				case Dial:
					dials++
					s.tell(Heard{ID: a.ID})
					s.tell(Down{ID: a.ID})
				}
			}
		}
		return dials
	}
	s.did = nil
	s.tell(Down{ID: 0})
	if n := accept(10 * time.Millisecond); n != 1 {
		t.Errorf("%d dials, when a path has ended that had lasted; want 1", n)
	}
	if n := accept(maxRound); n < 3 || n > 6 {
		t.Errorf("%d dials in the first %v, want some", n, maxRound)
	}
	if n := accept(time.Minute); n > int(time.Minute/maxRound) {
		t.Errorf("%d dials in a minute, want one each %v", n, maxRound)
	}
}

// Dials of a better interface fail at once, as without descriptors, while a second path over it stands by.
func TestUpgradeThatFails(t *testing.T) {
	s := roaming(t, func(c *Config) { c.Paths = Standby })
	s.tell(Heard{ID: 1})
	s.typing(10*time.Second, 0, 1)
	s.typing(260 * time.Millisecond)
	s.typing(7*time.Second, 0, 1)
	s.wantWithoutPings("LTE has taken over, and WiFi is dialed", Dial{ID: 1, Candidate: boundLTE, StandBy: true}, Activate{1},
		Close{0}, Dial{ID: 2, Candidate: wifi}, Dial{ID: 3, Candidate: wifi, StandBy: true})
	s.tell(Heard{ID: 3})
	s.tell(Down{ID: 2})
	fails := 1
	for range 100 {
		s.typing(100*time.Millisecond, 1, 3)
		for did := s.withoutPings(); len(did) > 0 && fails < 100; did = s.withoutPings() {
			for _, a := range did {
				if d, ok := a.(Dial); ok {
					fails++
					s.tell(Down{ID: d.ID})
				}
			}
		}
	}
	if fails < 1 || fails > 2 {
		t.Errorf("%d dials of WiFi in 10 s, want one or two", fails)
	}
}
