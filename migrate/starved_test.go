package migrate

import (
	"testing"
	"time"
)

// stop lets time pass without a call of the manager, as when the client is stopped.
func (s *story) stop(d time.Duration) {
	s.t.Helper()
	s.now = s.now.Add(d)
	s.tell(Starved{})
}

// Silence while the client was stopped is no reason to dial.
func TestStarvedClient(t *testing.T) {
	s := live(t)
	s.tell(Traffic{})
	s.tell(Unacked{s.now})
	s.stop(8 * time.Second)
	s.wantState("nothing was heard, nor could be", Live)
	s.want("the path is pinged", Ping{})
	s.tell(Heard{ID: 0, RTT: 0})
	s.tell(Unacked{})
	s.stop(time.Minute)
	s.tell(Heard{ID: 0, RTT: 0})
	s.pass(10 * time.Second)
	s.tell(Heard{ID: 0, RTT: 0})
	s.wantState("the path works", Live)
	s.wantWithoutPings("no dial")
}

// A path that died meanwhile is found as soon as if the client had come to it anew.
func TestStarvedClientOnDeadPath(t *testing.T) {
	s := live(t)
	s.tell(Unacked{s.now})
	s.stop(time.Minute)
	s.wantState("it may work", Live)
	s.pass(249 * time.Millisecond)
	s.wantWithoutPings("an ack may take 250 ms")
	s.pass(time.Millisecond)
	s.wantState("it does not", Suspect)
	s.wantWithoutPings("another connection is dialed", Dial{ID: 1, Candidate: wifi})
	s.stop(time.Second)
	s.wantState("being stopped does not make it better", Suspect)

	s = live(t)
	s.tell(Traffic{})
	s.stop(time.Minute)
	s.want("without input, a ping tells", Ping{})
	s.pass(time.Second - 1)
	s.wantWithoutPings("its answer may take a second")
	s.pass(1)
	s.wantWithoutPings("and no longer", Dial{ID: 1, Candidate: wifi})
}

// A client that is always starved finds a dead path too.
func TestStarvedForEver(t *testing.T) {
	s := live(t)
	s.tell(Unacked{s.now})
	start := s.now
	for s.manager.state == Live {
		s.stop(300 * time.Millisecond)
		if s.now.Sub(start) > 10*time.Second {
			t.Fatal("the path is still trusted")
		}
	}
	for range 3 * maxExcuses { // packets arrive in between
		s.tell(Heard{ID: 0, RTT: 0})
		s.tell(Unacked{s.now})
		s.wantState("a packet arrived", Live)
		s.stop(300 * time.Millisecond)
		s.wantState("it was stopped again", Live)
		s.now = s.now.Add(time.Millisecond)
	}
}

// A second path that works is no excuse for the first: a client that is always starved finds
// out that the first is dead, and being stopped makes that no better.
func TestStarvedWithTwoPaths(t *testing.T) {
	stopped := func(s *story) {
		s.t.Helper()
		s.stop(300 * time.Millisecond)
		s.now = s.now.Add(time.Millisecond)
		s.tell(Heard{ID: 1, RTT: 0})
	}
	s := roaming(t, func(c *Config) { c.Paths = Standby })
	s.tell(Heard{ID: 1, RTT: 0})
	s.did = nil
	s.tell(Traffic{})
	s.tell(Unacked{s.now})
	for range maxExcuses {
		stopped(s)
	}
	s.wantWithoutPings("the client was stopped again and again")
	stopped(s)
	s.wantWithoutPings("that is no excuse any more", Activate{1})

	s = roaming(t, func(c *Config) { c.Paths = Redundant })
	s.tell(Heard{ID: 1, RTT: 0})
	s.typing(4*time.Second, 1) // a ping over the first path is not answered
	for range 3 {
		if got := s.manager.Paths()[0].State; got != Suspect {
			t.Errorf("the state of the silent path is %v, want %v", got, Suspect)
		}
		stopped(s)
	}
}
