package migrate

import (
	"slices"
	"testing"
	"time"
)

// knocked returns on which candidates there were knocks since the last check.
func (s *story) knocked() (on []Candidate) {
	for _, a := range s.did {
		if k, ok := a.(Knock); ok {
			on = append(on, k.Candidate)
		}
	}
	s.did = nil
	return on
}

// While input waits, knocks are frequent and dials are not, whatever the candidate on which the
// server then answers.
func TestKnocksWhileInputWaits(t *testing.T) {
	s := roaming(t, nil)
	s.tell(Down{0})
	s.tell(Unacked{s.now})
	s.pass(2 * time.Second)
	s.did = nil
	s.pass(20 * time.Second)
	if n := dials(s.did); n > 6 {
		t.Errorf("%d dials in 20 s, want about one each 4 s", n)
	}
	s.did = nil
	s.pass(10 * urgentInterval)
	if on := s.knocked(); len(on) != 10 || !slices.Contains(on, wifi) || !slices.Contains(on, boundLTE) {
		t.Errorf("knocks on %v, want ten, on both in turn", on)
	}
	s.tell(Answered{boundLTE})
	s.wantWithoutPings("LTE works", Dial{ID: s.manager.lastID, Candidate: boundLTE})
	s.tell(Answered{boundLTE})
	s.wantWithoutPings("it is being dialed")
	s.pass(9 * urgentInterval)
	if on := s.knocked(); slices.Contains(on, boundLTE) || len(on) != 9 {
		t.Errorf("knocks on %v, want them on WiFi alone", on)
	}
	s.tell(Heard{ID: s.manager.lastID})
	s.tell(Unacked{})
	s.did = nil
	s.pass(time.Second)
	if on := s.knocked(); len(on) > 0 {
		t.Errorf("knocks on %v while the link is live", on)
	}
	s.tell(Answered{wifi})
	s.wantWithoutPings("a late answer changes nothing")
}

// While a path is pinged as often, there are few knocks on its candidate, but not for long. There are more pings
// while the user types.
func TestKnocksBesidePings(t *testing.T) {
	s := roaming(t, nil)
	s.tell(Traffic{})
	s.tell(Unacked{s.now})
	s.pass(time.Second)
	for _, c := range []struct {
		why          string
		typed        bool
		wifi, pings  int // in six intervals
		passesBefore time.Duration
	}{
		{"the user types", true, 1, 12, 0},
		{"the user waits", false, 1, 6, maxRound},
		{"QUIC may send no more pings", false, 3, 6, pingedFor},
	} {
		s.pass(c.passesBefore)
		if c.typed {
			s.tell(Traffic{})
		}
		s.did = nil
		s.pass(6 * urgentInterval)
		pings := 0
		for _, a := range s.did {
			if a == (Ping{}) {
				pings++
			}
		}
		onWiFi := 0
		on := s.knocked()
		for _, k := range on {
			if k == wifi {
				onWiFi++
			}
		}
		if len(on)-onWiFi != 3 || onWiFi != c.wifi || pings != c.pings {
			t.Errorf("%s: %d knocks, %d of them on the path's candidate, and %d pings; want %d, %d, %d",
				c.why, len(on), onWiFi, pings, 3+c.wifi, c.wifi, c.pings)
		}
	}
}

// In an outage of hours knocks are as rare as dials, but not when a key is typed or the network changes.
func TestKnocksInLongOutage(t *testing.T) {
	s := live(t)
	s.tell(Down{0})
	s.pass(time.Hour)
	s.did = nil
	s.pass(time.Minute)
	if on := s.knocked(); len(on) != 6 {
		t.Errorf("%d knocks in a minute, want one each 10 s", len(on))
	}
	s.tell(NetworkChanged{both})
	s.pass(slowRound)
	if on := s.knocked(); len(on) < 9 {
		t.Errorf("%d knocks within 10 s of a change, want one a second", len(on))
	}
	s.pass(time.Minute)
	s.did = nil
	s.tell(Unacked{s.now})
	s.pass(time.Second)
	if on := s.knocked(); len(on) < 8 {
		t.Errorf("%d knocks within a second of a key, want some ten", len(on))
	}
}

// A network that fails again after it has answered a knock is tried again a second later, and at once
// when it has changed.
func TestKnockAnsweredThenLost(t *testing.T) {
	answered := func() *story {
		s := live(t)
		s.tell(Down{0})
		s.tell(Unacked{s.now})
		s.pass(10 * time.Second)
		s.did = nil
		s.tell(Answered{wifi})
		s.wantWithoutPings("WiFi works", Dial{ID: s.manager.lastID, Candidate: wifi})
		return s
	}
	s := answered()
	s.pass(pingInterval - time.Millisecond)
	if on := s.knocked(); len(on) > 0 {
		t.Errorf("knocks on %v, want the dial to have time", on)
	}
	s.pass(2 * urgentInterval)
	if on := s.knocked(); len(on) == 0 {
		t.Errorf("no knock %v after the answer", pingInterval+2*urgentInterval)
	}
	s.tell(Answered{wifi})
	s.wantWithoutPings("WiFi works again", Dial{ID: s.manager.lastID, Candidate: wifi})

	s = answered()
	s.pass(100 * time.Millisecond)
	s.did = nil
	s.tell(NetworkChanged{[]Candidate{wifi}})
	s.pass(urgentInterval)
	if on := s.knocked(); len(on) == 0 {
		t.Error("no knock when the network has changed")
	}
	dialed := s.manager.dials[s.manager.lastID]
	if dialed.answered || dialed.since != s.now.Add(-urgentInterval) {
		t.Errorf("the last dial began %v ago, want one when the network has changed", s.now.Sub(dialed.since))
	}
}

// Something answers knocks, but is not the server.
func TestKnockAnsweredInVain(t *testing.T) {
	s := live(t)
	s.tell(Down{0})
	s.tell(Unacked{s.now})
	s.did = nil
	for begun := s.now; s.now.Sub(begun) < time.Minute; {
		s.tell(Answered{wifi})
		s.pass(20 * time.Millisecond)
	}
	if n := dials(s.did); n > 70 {
		t.Errorf("%d dials in a minute, want about one a second", n)
	}
	s.tell(NetworkChanged{both})
	s.pass(urgentInterval)
	s.did = nil
	s.tell(Answered{boundLTE})
	s.wantWithoutPings("the network has changed", Dial{ID: s.manager.lastID, Candidate: boundLTE})
	s.tell(Answered{lte})
	s.wantWithoutPings("there is no such candidate")
}

// Most dials that are not answered end before QUIC sends much. One on a slow path has its time.
func TestDialsEnd(t *testing.T) {
	for _, c := range []struct{ rtt, lasts time.Duration }{
		{20 * time.Millisecond, laterDial},
		{200 * time.Millisecond, 300 * time.Millisecond},
		{2 * time.Second, limits[QUIC].timeout},
	} {
		s := live(t)
		s.tell(Heard{ID: 0, RTT: c.rtt})
		s.tell(Down{0})
		s.pass(20 * time.Second)
		s.did = nil
		for dials(s.did) == 0 || s.manager.dials[s.manager.lastID].leastTime > laterDial {
			s.did = nil
			s.pass(time.Millisecond)
		}
		id := s.manager.lastID
		s.did = nil
		s.pass(c.lasts - 2*time.Millisecond)
		if slices.Contains(s.did, Action(Abandon{id})) {
			t.Errorf("with a round trip of %v, a dial ends before %v", c.rtt, c.lasts)
		}
		s.pass(2 * time.Millisecond)
		if !slices.Contains(s.did, Action(Abandon{id})) {
			t.Errorf("with a round trip of %v, a dial does not end after %v", c.rtt, c.lasts)
		}
	}
}

// A path that is much slower than the last one, or on which a dial takes more round trips, is found
// though something drops all knocks: a dial of each candidate has the time for that, again and again.
func TestSlowPathWithoutKnocks(t *testing.T) {
	t.Run("slow", func(t *testing.T) { slowPathWithoutKnocks(t, 800*time.Millisecond, 2*time.Second, 22*time.Second) })
	t.Run("very slow", func(t *testing.T) { slowPathWithoutKnocks(t, 2500*time.Millisecond, 25*time.Second, 42*time.Second) })
}

func slowPathWithoutKnocks(t *testing.T, takes, first, most time.Duration) {
	s := roaming(t, nil)
	s.tell(Heard{ID: 0, RTT: 20 * time.Millisecond})
	s.tell(Down{0})
	s.tell(Unacked{s.now})
	begun := s.now
	last := make(map[Candidate]time.Time) // when a dial had lasted that long
	for range 12_000 {
		s.pass(10 * time.Millisecond)
		for _, d := range s.manager.dials {
			if s.now.Sub(d.since) >= takes {
				last[d.candidate] = s.now
			}
		}
		for _, c := range []Candidate{wifi, boundLTE} {
			since := begun
			if at, ok := last[c]; ok {
				since = at
			}
			if s.now.Sub(since) > most {
				t.Fatalf("%v after the path was lost, no dial of %v has lasted %v within %v", s.now.Sub(begun), c, takes, most)
			}
		}
		if s.now.Sub(begun) == first && len(last) < 2 {
			t.Errorf("within %v, dials of %v have lasted %v, want one of each candidate", first, last, takes)
		}
	}
}

// A dial that begins beside a path that works keeps its time when that path fails.
func TestSecondDialOutlivesPath(t *testing.T) {
	s := roaming(t, func(c *Config) { c.Paths = Standby })
	s.wantWithoutPings("a second path", Dial{ID: 1, Candidate: boundLTE, StandBy: true})
	s.pass(700 * time.Millisecond)
	s.tell(Down{0})
	s.wantWithoutPings("the first has failed", Dial{ID: 2, Candidate: wifi})
	s.tell(Heard{ID: 1, RTT: 700 * time.Millisecond})
	s.wantState("the second is there", Live)
}
