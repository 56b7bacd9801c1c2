package migrate

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// Ways of a client with WiFi, which the system prefers, and LTE.
var (
	lte = Way{
		Remote:    wifi.Remote,
		Interface: "wwan0",
		Source:    netip.MustParseAddr("10.1.0.2"),
	}
	boundWifi = bound(wifi)
	boundLTE  = bound(lte)
	both      = []Way{wifi, boundWifi, boundLTE}
)

func bound(w Way) Way {
	w.Bound = true
	return w
}

// roaming begins with a carrier over WiFi, and LTE up.
func roaming(t *testing.T, change func(*Config)) *story {
	s := newStory(t)
	if change != nil {
		change(&s.link.cfg)
	}
	s.tell(Begun{wifi})
	s.tell(Network{both})
	s.tell(Heard{0, 50 * time.Millisecond})
	s.wantState("the server was heard", Live)
	return s
}

// typing lets time pass while a key is typed every 20 ms, and the given carriers
// bring the answers.
func (s *story) typing(d time.Duration, answering ...ID) {
	s.t.Helper()
	for until := s.now.Add(d); s.now.Before(until); {
		s.tell(Traffic{})
		if len(answering) == 0 {
			if s.link.waiting.IsZero() {
				s.tell(Waiting{s.now})
			}
		} else {
			s.tell(Waiting{})
		}
		for _, id := range answering {
			s.tell(Heard{id, 0})
		}
		s.pass(20 * time.Millisecond)
	}
}

// without returns what was done but for pings, and forgets it.
func (s *story) withoutPings() []Action {
	did := slices.DeleteFunc(s.did, func(a Action) bool { _, ping := a.(Ping); return ping })
	s.did = nil
	return did
}

func (s *story) wantButPings(why string, actions ...Action) {
	s.t.Helper()
	if did := s.withoutPings(); !slices.Equal(did, actions) {
		s.t.Errorf("%s: did %v %v, want %v %v", why, name(did), did, name(actions), actions)
	}
}

func TestInterfaceDown(t *testing.T) {
	s := roaming(t, nil)
	s.typing(time.Second, 0)
	s.did = nil
	s.tell(Network{[]Way{lte, boundLTE}})
	s.wantState("the system has chosen another interface", Moving)
	s.want("the way that there is now is tried, and the old socket may follow", Dial{1, lte, false}, Ping{0})
	s.pass(60 * time.Millisecond)
	s.tell(Heard{1, 0})
	s.wantState("it has answered", Live)
	s.wantButPings("the old path is given up when it has", Close{0})
}

func TestAddressReplaced(t *testing.T) {
	s := roaming(t, nil)
	other := wifi
	other.Source = netip.MustParseAddr("10.0.7.7")
	s.did = nil
	s.tell(Network{[]Way{other, bound(other), boundLTE}})
	s.want("the interface is the same, its address is not", Dial{1, other, false}, Ping{0})
	s.pass(30 * time.Millisecond)
	s.tell(Heard{0, 0})
	s.wantState("the old connection has followed the address", Live)
	s.pass(30 * time.Millisecond)
	s.tell(Heard{1, 0})
	s.wantButPings("the new one takes over all the same", Close{0})
}

func TestBlackHole(t *testing.T) {
	s := roaming(t, nil)
	s.typing(time.Second, 0)
	s.did = nil
	s.typing(240 * time.Millisecond)
	s.wantButPings("an answer may take a while")
	s.typing(20 * time.Millisecond)
	s.wantState("nothing was heard of what was typed", Suspect)
	s.wantButPings("WiFi is tried again first", Dial{1, wifi, false})
	s.typing(60 * time.Millisecond)
	s.wantButPings("and soon LTE", Dial{2, boundLTE, false})
	s.tell(Heard{2, 0})
	s.wantState("LTE works", Live)
	s.wantButPings("and is kept", Close{0}, Close{1})

	s.typing(29*time.Second, 2)
	s.wantButPings("WiFi is not trusted for a while")
	s.typing(2*time.Second, 2)
	s.wantButPings("then it is tried, for it may cost less", Dial{3, wifi, false})
	s.typing(4*time.Second, 2)
	s.wantButPings("in vain", Close{3})
	s.typing(55*time.Second, 2)
	s.wantButPings("it is left alone for twice as long")
	s.typing(3*time.Second, 2)
	s.wantButPings("and tried again", Dial{4, wifi, false})
	s.tell(Heard{4, 0})
	s.wantButPings("it is back", Close{2})
}

// Nothing of ours arrives over WiFi, and so the server sends its own again and
// again, which does.
func TestBlackHoleOneWay(t *testing.T) {
	s := roaming(t, nil)
	s.typing(time.Second, 0)
	s.did = nil
	heard := func(d time.Duration) {
		for until := s.now.Add(d); s.now.Before(until); s.pass(20 * time.Millisecond) {
			s.tell(Heard{0, 0})
		}
	}
	s.tell(Waiting{s.now})
	heard(480 * time.Millisecond)
	s.wantState("the answer may come behind what was heard", Live)
	s.wantButPings("which takes time")
	heard(40 * time.Millisecond)
	s.wantState("but no longer than that", Suspect)
	s.wantButPings("WiFi is tried again first", Dial{1, wifi, false})
	heard(60 * time.Millisecond)
	s.wantButPings("and soon LTE", Dial{2, boundLTE, false})
	s.tell(Heard{2, 0})
	s.wantState("LTE works", Live)
	s.wantButPings("and is kept, though WiFi is heard as well", Close{0}, Close{1})
	s.tell(Waiting{})
	s.typing(29*time.Second, 2)
	s.wantButPings("WiFi is not trusted for a while")
}

// When WiFi fails soon after each return, it is returned to ever more rarely.
func TestWeakNetworksDoNotFlap(t *testing.T) {
	s := roaming(t, nil)
	moves := 0
	on := ID(0)
	weak := time.Duration(0) // for how long WiFi has worked
	for hour := s.now.Add(time.Hour); s.now.Before(hour); {
		if s.link.paths[on].way.Interface == "wlan0" && weak >= 10*time.Second {
			s.typing(100 * time.Millisecond)
		} else {
			s.typing(100*time.Millisecond, on)
		}
		weak += 100 * time.Millisecond
		for _, a := range s.withoutPings() {
			d, ok := a.(Dial)
			if !ok || s.link.dials[d.ID] == nil || d.Way.Interface == "wlan0" && weak < 30*time.Second && weak >= 10*time.Second {
				continue
			}
			s.tell(Heard{d.ID, 0})
			s.tell(Waiting{})
			if s.link.paths[d.ID] != nil {
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
	s.wantButPings("nothing but the wait is to be seen of it")
}

func TestOutageWithoutEvent(t *testing.T) {
	s := roaming(t, nil)
	s.typing(time.Second, 0)
	s.typing(30 * time.Second)
	s.wantState("nothing works", Offline)
	s.did = nil
	s.pass(110 * time.Millisecond)
	if n := dials(s.did); n < 2 {
		t.Errorf("%d attempts in 110 ms, want both ways to be tried", n)
	}
	if n := len(s.link.dials); n > MaxDials {
		t.Errorf("%d attempts at once", n)
	}
	s.pass(10 * time.Minute)
	s.did = nil
	s.pass(4 * time.Second)
	if n := dials(s.did); n != 4 {
		t.Errorf("%d attempts in 4 s after ten minutes, want two rounds of two", n)
	}
}

func TestOutageWithEvent(t *testing.T) {
	s := roaming(t, nil)
	s.tell(Network{nil})
	s.wantState("there is no way", Moving)
	s.pass(10 * time.Minute)
	s.wantState("for long", Offline)
	s.did = nil
	s.tell(Network{both})
	s.wantButPings("there is one again", Dial{1, wifi, false})
	s.tell(Heard{1, 0})
	s.wantState("and it works", Live)
}

func TestOtherFamily(t *testing.T) {
	s := roaming(t, nil)
	six := Way{Remote: netip.MustParseAddrPort("[2001:db8::1]:4433"), Interface: "wlan0", Source: netip.MustParseAddr("2001:db8::2")}
	s.did = nil
	s.tell(Network{[]Way{six, bound(six)}})
	s.wantButPings("there is only IPv6 now", Dial{1, six, false})
	s.tell(Heard{1, 0})
	s.tell(Network{[]Way{wifi, six}})
	s.tell(Heard{1, 0})
	s.did = nil
	s.tell(Waiting{s.now})
	s.pass(310 * time.Millisecond)
	s.wantButPings("the address that worked last is tried first", Dial{2, six, false}, Dial{3, wifi, false})
}

func TestWoke(t *testing.T) {
	s := roaming(t, nil)
	s.did = nil
	s.tell(Woke{})
	s.wantState("nobody knows", Suspect)
	s.want("the path is asked, and tried anew", Dial{1, wifi, false}, Ping{0})
	s.tell(Heard{0, 0})
	s.wantState("it works", Live)
	s.typing(time.Minute, 0)
	s.wantButPings("so nothing else is tried, and the attempt ends", Close{1})
}

func TestStandby(t *testing.T) {
	s := roaming(t, func(c *Config) { c.Paths = Standby })
	s.wantButPings("a second path is opened over the other interface", Dial{1, boundLTE, true})
	s.tell(Heard{1, 0})
	s.typing(10*time.Second, 0, 1)
	s.wantButPings("and kept")
	s.typing(260 * time.Millisecond)
	s.wantState("the first is in doubt, the second is there", Live)
	s.wantButPings("it takes over without a handshake", Activate{1})
	s.typing(4*time.Second, 1)
	s.wantButPings("the old one has time to prove itself")
	s.typing(2*time.Second, 1)
	s.wantButPings("and is given up; another second path is sought", Close{0}, Dial{2, wifi, true})
}

func TestRedundant(t *testing.T) {
	s := roaming(t, func(c *Config) { c.Paths = Redundant })
	s.wantButPings("a second path is opened over the other interface", Dial{1, boundLTE, false})
	s.tell(Heard{1, 0})
	s.typing(10*time.Second, 0, 1)
	s.want("both are used, and heard")
	s.typing(960*time.Millisecond, 1)
	s.want("one of them is silent")
	s.typing(2*time.Second, 1)
	s.wantState("nobody notices", Live)
	s.want("but it is asked", Ping{0}, Ping{0})
	s.typing(5*time.Second, 1)
	if got := s.withoutPings(); !slices.Equal(got, []Action{Close{0}, Dial{2, wifi, false}}) {
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
	s.tell(Heard{1, 0})
	s.typing(time.Second, 0, 1)
	s.did = nil
	s.tell(Network{[]Way{lte, boundLTE}})
	s.typing(time.Second, 0, 1)
	s.wantState("the first path has moved to the other interface", Live)
	s.wantButPings("both are used")
	s.typing(6*time.Second, 0, 1)
	s.wantButPings("one over an interface does", Close{0})
	s.tell(Network{both})
	s.wantButPings("WiFi is back", Dial{2, wifi, false})
}

// Where one interface is left, the system chooses no other: sockets bound to it and
// others go the same way.
func TestOneInterfaceLeft(t *testing.T) {
	s := roaming(t, func(c *Config) { c.Paths = Redundant })
	s.tell(Heard{1, 0})
	s.did = nil
	s.tell(Network{[]Way{lte}})
	s.wantState("the second path is what it was", Live)
	s.want("the first may have moved there", Ping{0})
	s.typing(6*time.Second, 1)
	s.wantButPings("it has not", Close{0})
}

func TestRedundantAvoids(t *testing.T) {
	s := roaming(t, func(c *Config) { c.Paths, c.Avoid = Redundant, []string{"wwan*"} })
	s.wantButPings("LTE costs money")
	s.tell(Network{[]Way{lte}})
	s.tell(Heard{1, 0})
	s.wantButPings("it is all that there is", Dial{1, lte, false}, Close{0})
	s.tell(Network{[]Way{lte, boundWifi}})
	s.wantButPings("WiFi is back", Dial{2, boundWifi, false})
	s.tell(Heard{2, 0})
	s.typing(4*time.Second, 1, 2)
	s.wantButPings("it may not last")
	s.typing(2*time.Second, 1, 2)
	s.wantButPings("it does", Close{1})
}

// Some routers confirm each few seconds what is known.
func TestSecondPathThatFailsIsTriedRarely(t *testing.T) {
	s := roaming(t, func(c *Config) { c.Paths = Standby })
	s.tell(Network{both})
	s.did = nil
	for range 60 {
		s.tell(Network{both})
		s.typing(10*time.Second, 0)
	}
	if n := dials(s.did); n > 15 {
		t.Errorf("%d attempts in ten minutes", n)
	}
}

// The server's machine answers, and the process that has the session does not.
func TestServerInNeed(t *testing.T) {
	s := roaming(t, nil)
	s.tell(Waiting{s.now})
	for range 120 {
		s.pass(time.Second)
		s.tell(Heard{0, 0})
	}
	s.did = nil
	for range 120 {
		s.pass(time.Second)
		s.tell(Heard{0, 0})
	}
	s.wantState("the path works", Live)
	s.wantButPings("another would be no better")
	s.pass(45 * time.Second)
	s.wantState("now it does not", Offline)
}

func TestTypingAfterLongOutage(t *testing.T) {
	s := roaming(t, nil)
	s.tell(Down{0})
	s.tell(Waiting{s.now})
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
	s.tell(Waiting{s.now})
	s.pass(450 * time.Millisecond)
	s.wantButPings("LTE costs money", Dial{1, wifi, false})
	s.pass(140 * time.Millisecond)
	s.wantButPings("but is better than nothing", Dial{2, wifi, false}, Dial{3, boundLTE, false})

	s = roaming(t, func(c *Config) { c.Prefer = []string{"eth*", "ww*"} })
	s.did = nil
	s.typing(calm, 0)
	s.wantButPings("LTE is to be preferred to WiFi, whatever the system thinks", Dial{1, boundLTE, false})
	s.tell(Heard{1, 0})
	s.wantButPings("so it is left", Close{0})
	s.typing(time.Minute, 1)
	s.wantButPings("for good")
}

func TestFlappingInterfaces(t *testing.T) {
	s := roaming(t, nil)
	s.did = nil
	for i := range 1000 {
		ways := both
		if i%2 == 0 {
			ways = []Way{lte, boundLTE}
		}
		s.tell(Network{ways})
		s.pass(10 * time.Millisecond)
	}
	if n := dials(s.did); n > 250 {
		t.Errorf("%d attempts in 10 s of 100 changes a second, want no more than without them", n)
	}
	if n := len(s.link.dials); n > MaxDials {
		t.Errorf("%d attempts at once", n)
	}
}

func TestHundredsOfInterfaces(t *testing.T) {
	s := roaming(t, nil)
	var ways []Way
	for i := range 300 {
		w := boundLTE
		w.Interface = "veth" + string(rune('a'+i%26)) + string(rune('a'+i/26))
		ways = append(ways, w)
	}
	s.tell(Network{append(ways, both...)})
	s.did = nil
	s.tell(Down{0})
	s.tell(Waiting{s.now})
	s.pass(10 * time.Second)
	if n := dials(s.did); n > 250 {
		t.Errorf("%d attempts in 10 s, want no more than with few interfaces", n)
	}
	if s.did[0] != (Dial{1, wifi, false}) {
		t.Errorf("began with %v, want the way of the system", s.did[0])
	}
}

// A path that takes long to answer is found although others are tried all the
// time.
func TestSlowPath(t *testing.T) {
	s := roaming(t, nil)
	s.tell(Down{0})
	s.tell(Waiting{s.now})
	longest := time.Duration(0)
	for range 1000 {
		s.pass(20 * time.Millisecond)
		for _, d := range s.link.dials {
			longest = max(longest, s.now.Sub(d.since))
		}
	}
	if longest < dialPatience-100*time.Millisecond {
		t.Errorf("no attempt lived longer than %v, want one to have %v", longest, dialPatience)
	}
}

// Whatever happens, in any order: attempts and paths stay few, nothing is done
// to what does not exist, and a path that works is not left without another.
func FuzzLink(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed, uint8(seed%3))
	}
	six := Way{Remote: netip.MustParseAddrPort("[2001:db8::1]:4433"), Interface: "eth0", Source: netip.MustParseAddr("2001:db8::2")}
	networks := [][]Way{both, {lte, boundLTE}, nil, {six, bound(six)}, append(slices.Clone(both), six, bound(six)), {{Remote: wifi.Remote}}}
	f.Fuzz(func(t *testing.T, seed uint64, paths uint8) {
		rng := rand.New(rand.NewPCG(seed, 0))
		s := newStory(t)
		s.link.cfg.Paths = Paths(paths % 3)
		s.link.cfg.Avoid = []string{"wwan*"}
		s.tell(Begun{wifi})
		alive := map[ID]bool{0: true}
		for range 300 {
			any := ID(rng.Int64N(int64(s.link.last) + 2))
			var e Event
			switch rng.IntN(10) {
			case 0:
				e = Network{networks[rng.IntN(len(networks))]}
			case 1:
				e = Down{any}
				delete(alive, any)
			case 2, 3, 4:
				if alive[any] {
					e = Heard{any, time.Duration(rng.IntN(500)) * time.Millisecond}
				}
			case 5:
				e = Waiting{s.now}
			case 6:
				e = Waiting{}
			case 7:
				e = Traffic{}
			case 8:
				e = Woke{}
			}
			s.tell(e)
			s.pass(time.Duration(rng.IntN(2000)) * time.Millisecond)
			for _, a := range s.did {
				switch a := a.(type) {
				case Dial:
					if a.Way.Remote == (netip.AddrPort{}) {
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
					if !alive[a.ID] || s.link.cfg.Paths != Standby {
						t.Fatalf("activated %d", a.ID)
					}
				}
			}
			s.did = nil
			if n := len(s.link.dials); n > MaxDials {
				t.Fatalf("%d attempts at once", n)
			}
			if n := len(s.link.paths); n > 4 {
				t.Fatalf("%d paths", n)
			}
			if state, _ := s.link.State(); state == Live && len(s.link.paths) == 0 {
				t.Fatal("live without a path")
			}
		}
	})
}
