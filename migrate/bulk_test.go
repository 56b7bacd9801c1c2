package migrate

import (
	"testing"
	"time"
)

// bulkStory begins a story in which up to four carriers carry much data.
func bulkStory(t *testing.T) *story {
	s := roaming(t, func(c *Config) { c.Carriers = 4 })
	s.typing(time.Second, 0)
	s.did = nil
	return s
}

// send sends much for a time, while some carriers are heard.
func (s *story) send(d time.Duration, heard ...ID) {
	for range d / BulkInterval {
		s.pass(BulkInterval)
		for _, id := range heard {
			s.tell(Heard{ID: id})
		}
		s.tell(Bulk{Limited: true})
	}
}

func stripeOf(id ID, c Candidate) Dial { return Dial{ID: id, Candidate: c, Stripe: true} }

func TestStripesForBulk(t *testing.T) {
	s := bulkStory(t)
	s.send(BulkInterval, 0)
	s.wantWithoutPings("much is sent", stripeOf(1, wifi), stripeOf(2, wifi), stripeOf(3, wifi))
	s.send(10*time.Second, 0, 1, 2, 3)
	s.wantWithoutPings("they are kept while that lasts")
	s.tell(Bulk{})
	s.typing(4*time.Second, 0)
	s.wantWithoutPings("and a little longer")
	s.typing(2*time.Second, 0)
	s.wantWithoutPings("and then closed", Close{1}, Close{2}, Close{3})
}

func TestStripesDoNotRoam(t *testing.T) {
	s := bulkStory(t)
	s.send(BulkInterval, 0)
	s.send(BulkInterval, 0, 1, 2, 3)
	s.did = nil
	s.tell(NetworkChanged{[]Candidate{lte, boundLTE}})
	s.wantWithoutPings("the path is gone, and with it its stripes", Dial{ID: 4, Candidate: lte}, Close{1}, Close{2}, Close{3})
	s.tell(Heard{ID: 4})
	s.wantWithoutPings("there is another path", Close{0}, stripeOf(5, lte), stripeOf(6, lte), stripeOf(7, lte))
}

func TestStripesThatFail(t *testing.T) {
	s := bulkStory(t)
	s.send(BulkInterval, 0)
	s.did = nil
	for id := ID(1); id <= 3; id++ {
		s.tell(Down{ID: id})
	}
	s.send(time.Minute, 0)
	if n := dials(s.did); n < 3 || n > 12 {
		t.Errorf("%d dials of stripes in a minute, none of which is answered", n)
	}
	s.wantState("the path works", Live)
}

func TestAggregate(t *testing.T) {
	s := roaming(t, func(c *Config) { c.Paths = Aggregate })
	s.wantWithoutPings("a second path is opened over the other interface", stripeOf(1, boundLTE))
	s.tell(Heard{ID: 1})
	s.typing(10*time.Second, 0, 1)
	s.wantWithoutPings("and kept")
	s.typing(260 * time.Millisecond)
	s.wantState("the first is suspect, the second works", Live)
	s.wantWithoutPings("it takes over without a handshake", Activate{1})
}

// sendAt sends much for a time over the only path, on which round trips take so long.
func (s *story) sendAt(rtt, d time.Duration, lost float64) {
	for range d / BulkInterval {
		s.pass(BulkInterval)
		s.tell(Heard{ID: 0, RTT: rtt})
		for id := range s.manager.bulk.stripes {
			s.tell(Heard{ID: id})
		}
		s.tell(Bulk{Limited: true, Lost: lost})
	}
}

// With Adapt, there are stripes while the path has no queue, and few or none while it has one or
// loses much.
func TestStripesAdapt(t *testing.T) {
	const short, long = 50 * time.Millisecond, 64 * time.Millisecond
	s := roaming(t, func(c *Config) { c.Carriers, c.Adapt = 4, true })
	s.typing(time.Second, 0)
	s.did = nil
	s.sendAt(long, time.Second, 0)
	s.sendAt(short, BulkInterval, 0)
	s.wantWithoutPings("no queue", stripeOf(1, wifi), stripeOf(2, wifi), stripeOf(3, wifi))
	s.sendAt(short+3*time.Millisecond, 10*time.Second, 0.01)
	s.wantWithoutPings("nothing that matters has changed")
	s.sendAt(long+3*time.Millisecond, 500*time.Millisecond, 0)
	s.wantWithoutPings("a queue", Close{2}, Close{3})
	s.sendAt(long+3*time.Millisecond, 500*time.Millisecond, 0)
	s.wantWithoutPings("which stays", Close{1})
	s.sendAt(short, 750*time.Millisecond, 0)
	s.wantWithoutPings("it has gone, for now")
	s.sendAt(short, time.Second, 0)
	s.wantWithoutPings("and stays away", stripeOf(4, wifi), stripeOf(5, wifi), stripeOf(6, wifi))
	s.sendAt(short, time.Second, 0.03)
	s.wantWithoutPings("much is lost", Close{5}, Close{6}, Close{4})
}

// A moment without a path is no reason for more stripes than a path with a queue has.
func TestStripesAdaptWithoutPath(t *testing.T) {
	const short, long = 50 * time.Millisecond, 70 * time.Millisecond
	s := roaming(t, func(c *Config) { c.Carriers, c.Adapt = 4, true })
	s.typing(time.Second, 0)
	s.sendAt(short, time.Second, 0)
	s.sendAt(long, 3*time.Second, 0)
	if n := len(s.manager.bulk.stripes); n != 0 {
		t.Fatalf("%d stripes on a path with a queue", n)
	}
	s.tell(NetworkChanged{[]Candidate{lte, boundLTE}})
	s.wantState("the path may be gone", Moving)
	s.tell(Bulk{Limited: true})
	s.did = nil
	s.tell(NetworkChanged{both})
	s.tell(Heard{ID: 0, RTT: long})
	s.wantState("it is not", Live)
	for _, a := range s.withoutPings() {
		if d, ok := a.(Dial); ok && d.Stripe {
			t.Errorf("dialed %v", d)
		}
	}
}

// A stripe that is answered makes the wait after the next failure short again.
func TestStripesAfterFailures(t *testing.T) {
	s := roaming(t, func(c *Config) { c.Carriers = 2 })
	s.send(5*time.Minute, 0) // no dial of a stripe is answered
	s.did = nil
	for dials(s.did) == 0 {
		s.send(BulkInterval, 0)
	}
	id := s.manager.lastID
	s.send(time.Minute, 0, id)
	s.tell(Down{id})
	s.did = nil
	s.send(firstStripe+BulkInterval, 0)
	s.wantWithoutPings("one failure", stripeOf(id+1, wifi))
}
