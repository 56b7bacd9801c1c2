package migrate

import (
	"testing"
	"time"
)

// dials returns the dials since the last check.
func (s *story) dials() (dials []Dial) {
	for _, a := range s.did {
		if d, ok := a.(Dial); ok {
			dials = append(dials, d)
		}
	}
	s.did = nil
	return dials
}

// listen lets time pass while the server answers each ping.
func (s *story) listen(d time.Duration, ids ...ID) {
	for until := s.now.Add(d); s.now.Before(until); {
		s.pass(min(5*time.Second, until.Sub(s.now)))
		for _, id := range ids {
			s.tell(Heard{ID: id, RTT: 50 * time.Millisecond})
		}
	}
}

// Each day a fresh carrier is dialed beside the one in use, and takes over. The old one stands by for
// some seconds.
func TestRenewedDaily(t *testing.T) {
	s := live(t)
	s.listen(renewAfter-time.Minute, 0)
	if dials := s.dials(); len(dials) != 0 {
		t.Fatalf("dials %v within a day", dials)
	}
	for day := range ID(3) {
		s.listen(time.Minute, day)
		dials := s.dials()
		if len(dials) != 1 || dials[0] != (Dial{ID: day + 1, Candidate: wifi, Fresh: true}) {
			t.Fatalf("day %d: dials %v, want a fresh one", day, dials)
		}
		s.tell(Heard{ID: day + 1, RTT: 50 * time.Millisecond})
		s.want("the fresh one answers: the old one stands by, and is pinged until it is closed", StandBy{day}, Ping{ID: day})
		s.listen(10*time.Second, day, day+1)
		closed := 0
		for _, a := range s.did {
			if a == (Close{day}) {
				closed++
			}
		}
		if closed != 1 || s.manager.Moves() != 0 {
			t.Errorf("day %d: the old one was closed %d times, and %d moves are told", day, closed, s.manager.Moves())
		}
		s.did = nil
		s.listen(renewAfter-time.Minute-10*time.Second, day+1)
	}
}

// Traffic delays that for an hour, a dial that fails for another. Over ssh there is none.
func TestRenewWaits(t *testing.T) {
	s := live(t)
	s.listen(renewAfter-time.Minute, 0)
	for range 2 * 60 {
		s.tell(Traffic{})
		s.listen(30*time.Second, 0)
	}
	if dials := s.dials(); len(dials) != 0 {
		t.Fatalf("dials %v while there is traffic", dials)
	}
	for _, after := range []time.Duration{2 * time.Minute, renewPause + time.Minute} {
		s.tell(Traffic{})
		s.listen(after, 0)
		dials := s.dials()
		if len(dials) != 1 || !dials[0].Fresh {
			t.Fatalf("dials %v after %v, want a fresh one", dials, after)
		}
		s.tell(Down{dials[0].ID})
		s.wantState("the dial has failed", Live)
	}

	s = newStory(t)
	s.tell(Started{viaSSH})
	s.tell(NetworkChanged{[]Candidate{viaSSH}})
	s.tell(Heard{ID: 0, RTT: 50 * time.Millisecond})
	s.did = nil
	s.listen(3*renewAfter, 0)
	if dials := s.dials(); len(dials) != 0 {
		t.Errorf("dials %v, want no login by ssh", dials)
	}
}

// A fresh carrier that answers when the one in use does not is another path as any.
func TestRenewedWhileSilent(t *testing.T) {
	s := live(t)
	s.listen(renewAfter, 0)
	s.dials()
	s.tell(Unacked{s.now})
	s.pass(time.Second)
	s.did = nil
	s.tell(Heard{ID: 1, RTT: 50 * time.Millisecond})
	if s.manager.Moves() != 1 || len(s.manager.Paths()) != 1 {
		t.Errorf("%d moves and %d paths, want that it has taken over", s.manager.Moves(), len(s.manager.Paths()))
	}
}
