package migrate

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// A story tells a manager what happens, and checks what it does.
type story struct {
	t       *testing.T
	manager *Manager
	now     time.Time
	did     []Action
}

func newStory(t *testing.T) *story {
	s := &story{t: t, now: time.Unix(0, 0), manager: New(Config{})}
	return s
}

// tell gives the manager an event now.
func (s *story) tell(e Event) {
	s.t.Helper()
	s.did = append(s.did, s.manager.Handle(s.now, e)...)
}

// pass lets time pass, and calls the manager at its deadlines.
func (s *story) pass(d time.Duration) {
	s.t.Helper()
	until := s.now.Add(d)
	for wakes := 0; ; wakes++ {
		at := s.manager.Deadline()
		if at.IsZero() || at.After(until) {
			break
		}
		if at.Before(s.now) {
			s.t.Fatalf("at %v: its deadline was %v ago", s.now, s.now.Sub(at))
		}
		s.now = at
		before := s.manager.Deadline()
		s.tell(nil)
		if wakes > 100_000 || s.manager.Deadline().Equal(before) {
			s.t.Fatalf("at %v: does nothing at its deadline", s.now)
		}
	}
	s.now = until
}

// want checks what the manager has done since the last check.
func (s *story) want(why string, actions ...Action) {
	s.t.Helper()
	if !slices.Equal(s.did, actions) {
		s.t.Errorf("%s: did %v, want %v", why, name(s.did), name(actions))
	}
	s.did = nil
}

func name(actions []Action) (names []string) {
	for _, a := range actions {
		names = append(names, fmt.Sprintf("%T%v", a, a))
	}
	return names
}

func (s *story) wantState(why string, want State) {
	s.t.Helper()
	if got, _ := s.manager.State(); got != want {
		s.t.Errorf("%s: state is %v, want %v", why, got, want)
	}
}

// wifi is the candidate that the system chooses.
var wifi = Candidate{
	Remote:    netip.MustParseAddrPort("192.0.2.1:4433"),
	Interface: "wlan0",
	Source:    netip.MustParseAddr("10.0.0.2"),
}

// live begins a story with a carrier that works.
func live(t *testing.T) *story {
	s := newStory(t)
	s.tell(Started{wifi})
	s.tell(NetworkChanged{[]Candidate{wifi}})
	s.tell(Heard{ID: 0, RTT: 50 * time.Millisecond})
	s.did = nil
	s.wantState("the server was heard", Live)
	return s
}

func TestQuietWhenIdle(t *testing.T) {
	s := live(t)
	for range 20 {
		s.pass(25 * time.Second)
		s.want("no traffic: a whole ping every 25 s", Ping{})
		s.tell(Heard{ID: 0, RTT: 0})
	}
	s.tell(Traffic{})
	for i := range 10 {
		s.pass(5 * time.Second)
		s.want("traffic within the last minute: a ping every 5 s, mostly a short one", Ping{Short: i%5 != 4})
		s.tell(Heard{ID: 0, RTT: 0})
	}
	s.wantState("all pings were answered", Live)
}

// The first key after minutes without one does not make a path suspect that was not to be pinged yet.
func TestTypingAfterIdle(t *testing.T) {
	s := live(t)
	s.listen(5*time.Minute, 0)
	s.pass(24 * time.Second)
	s.did = nil
	s.tell(Traffic{})
	s.tell(Unacked{s.now})
	s.wantState("a key is typed", Live)
	s.pass(60 * time.Millisecond)
	s.tell(Heard{ID: 0, RTT: 60 * time.Millisecond})
	s.tell(Unacked{})
	if dials := s.dials(); len(dials) != 0 {
		t.Errorf("dials %v", dials)
	}
}

func TestTypingIntoSilence(t *testing.T) {
	s := live(t)
	s.pass(10 * time.Second)
	s.tell(Unacked{s.now})
	s.pass(249 * time.Millisecond)
	s.want("an ack may take 250 ms")
	s.pass(time.Millisecond)
	s.wantState("nothing was heard of the key for 250 ms", Suspect)
	s.want("another connection is dialed", Dial{ID: 1, Candidate: wifi})
	s.pass(250 * time.Millisecond)
	s.wantWithoutPings("and a second one", Dial{ID: 2, Candidate: wifi})
	s.tell(Heard{ID: 1, RTT: 0})
	s.wantState("the new one has answered", Live)
	s.want("all others are closed", Close{0}, Close{2})
}

func TestOfflineSinceSuspicion(t *testing.T) {
	s := live(t)
	s.tell(Unacked{s.now})
	s.pass(250 * time.Millisecond)
	s.wantState("nothing was heard of the key", Suspect)
	lost := s.now
	s.pass(time.Minute)
	s.wantState("nor since", Offline)
	if _, since := s.manager.State(); !since.Equal(lost) {
		t.Errorf("offline %v after contact was lost, want since then", since.Sub(lost))
	}
}

func TestAnswerEndsSuspicion(t *testing.T) {
	s := live(t)
	s.tell(Unacked{s.now})
	s.pass(300 * time.Millisecond)
	s.want("suspicion", Dial{ID: 1, Candidate: wifi})
	s.tell(Heard{ID: 0, RTT: 0})
	s.tell(Unacked{})
	s.wantState("the old path works after all", Live)
	s.pass(2 * time.Second)
	s.want("no other attempt is made")
	s.tell(Heard{ID: 1, RTT: 0})
	s.want("the newer one is kept", Close{0})
}

func TestPingUnanswered(t *testing.T) {
	s := live(t)
	s.tell(Traffic{})
	s.pass(5 * time.Second)
	s.want("a keepalive interval without a packet", Ping{Short: true})
	s.pass(125 * time.Millisecond)
	s.want("a restarted server would answer only this", Ping{})
	s.pass(875*time.Millisecond - 1)
	s.wantState("the answer may take a second", Live)
	s.want("nothing more is done meanwhile")
	s.pass(1)
	s.wantState("but no longer", Suspect)
	s.want("another connection is dialed beside the old one", Dial{ID: 1, Candidate: wifi})
	s.pass(8 * time.Second)
	s.wantState("the stall limit has not passed", Suspect)
	s.pass(time.Second)
	s.wantState("it has", Offline)
}

func TestPingUnansweredOnLongPath(t *testing.T) {
	s := live(t)
	s.tell(Heard{ID: 0, RTT: 600 * time.Millisecond})
	s.tell(Traffic{})
	s.pass(5*time.Second + 2400*time.Millisecond - 1)
	s.wantState("the answer may take four round trips", Live)
	s.pass(1)
	s.wantState("but no longer", Suspect)
}

// A packet that arrived before a ping was sent is no answer to it, whenever it is reported.
func TestHeardBeforePing(t *testing.T) {
	s := live(t)
	s.tell(Traffic{})
	s.pass(5 * time.Second)
	s.tell(Heard{ID: 0, At: s.now.Add(-time.Millisecond)})
	s.pass(time.Second)
	s.wantState("the ping is not answered", Suspect)
}

func TestBackoff(t *testing.T) {
	s := live(t)
	s.tell(Down{0})
	var at []time.Duration
	start := s.now
	for len(at) < 8 {
		for _, a := range s.did {
			if d, ok := a.(Dial); ok {
				at = append(at, s.now.Sub(start))
				s.did = nil
				s.tell(Down{d.ID}) // refused at once
				break
			}
		}
		s.pass(50 * time.Millisecond)
	}
	want := []time.Duration{0, 250, 500, 1000, 2000, 4000, 6000, 8000}
	for i := range want {
		if at[i] != want[i]*time.Millisecond {
			t.Errorf("attempt %d after %v, want %v ms", i+1, at[i], int64(want[i]))
		}
	}
}

func dials(actions []Action) (n int) {
	for _, a := range actions {
		if _, ok := a.(Dial); ok {
			n++
		}
	}
	return n
}

func TestSlowAfterQuarterOfAnHour(t *testing.T) {
	s := live(t)
	s.tell(Down{0})
	s.pass(20 * time.Minute)
	s.did = nil
	s.pass(time.Minute)
	if n := dials(s.did); n != 6 {
		t.Errorf("%d attempts a minute after twenty, want 6", n)
	}
}

func TestDeniedCarrierIsNoContact(t *testing.T) {
	s := live(t)
	s.tell(Down{0})
	for range 5 {
		s.pass(4 * time.Second)
	}
	s.did = nil
	for dials(s.did) == 0 {
		s.pass(10 * time.Millisecond)
	}
	s.tell(Down{s.manager.lastID}) // the server has said no
	s.wantState("a carrier that ended before it was heard changes nothing", Offline)
	s.did = nil
	s.pass(time.Second)
	if n := dials(s.did); n > 1 {
		t.Errorf("%d attempts in a second, want no more than by the backoff", n)
	}
}

func TestNeverConnected(t *testing.T) {
	s := newStory(t)
	s.tell(NetworkChanged{[]Candidate{wifi}})
	s.want("without a carrier, one is dialed at once", Dial{ID: 1, Candidate: wifi})
	s.tell(Down{1})
	s.pass(time.Minute)
	s.wantState("it never worked", Connecting)
	if dials(s.did) == 0 {
		t.Error("no other attempt")
	}
}
