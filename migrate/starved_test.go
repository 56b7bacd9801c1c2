package migrate

import (
	"testing"
	"time"
)

// stop lets time pass without a call of the manager, as when the client is stopped.
func (s *story) stop(d time.Duration) {
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
	s.want("the path is pinged", Ping{0})
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
	s.wantWithoutPings("another connection is dialed", Dial{1, wifi, false})
	s.stop(time.Second)
	s.wantState("being stopped does not make it better", Suspect)

	s = live(t)
	s.tell(Traffic{})
	s.stop(time.Minute)
	s.want("without input, a ping tells", Ping{0})
	s.pass(time.Second - 1)
	s.wantWithoutPings("its answer may take a second")
	s.pass(1)
	s.wantWithoutPings("and no longer", Dial{1, wifi, false})
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
