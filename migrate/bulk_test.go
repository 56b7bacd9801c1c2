package migrate

import (
	"slices"
	"testing"
	"time"
)

// withTCP are the candidates of both interfaces, by QUIC and TCP.
var withTCP = append(slices.Clone(both), wifiTCP, lteTCP)

// bulkStory begins a story over QUIC, to a server that TCP reaches too.
func bulkStory(t *testing.T, change func(*Config)) *story {
	s := started(t, wifi, change, withTCP...)
	s.tell(Heard{ID: 0, RTT: 50 * time.Millisecond})
	s.typing(time.Second, 0)
	s.did = nil
	return s
}

// send sends much for a time over the path, on which round trips take so long, while bulk carriers are heard.
func (s *story) send(d, rtt time.Duration) {
	for range d / BulkInterval {
		s.pass(BulkInterval)
		s.tell(Heard{ID: 0, RTT: rtt})
		for id := range s.manager.bulk.carriers {
			s.tell(Heard{ID: id})
		}
		s.tell(Bulk{Limited: true})
	}
}

func bulkOver(id ID, c Candidate) Dial { return Dial{ID: id, Candidate: c, Bulk: true} }

const (
	short = 50 * time.Millisecond
	some  = 60 * time.Millisecond // a queue that one carrier has
	long  = 70 * time.Millisecond
)

func TestBulkRidesTCP(t *testing.T) {
	s := bulkStory(t, nil)
	s.send(BulkInterval, some)
	s.wantWithoutPings("a backlog lasts", bulkOver(1, wifiTCP))
	s.send(10*time.Second, some)
	s.wantWithoutPings("the carrier is kept while that is so")
	s.tell(Bulk{})
	s.typing(4*time.Second, 0)
	s.wantWithoutPings("and a little longer")
	s.typing(2*time.Second, 0)
	s.wantWithoutPings("and then closed", Close{1})
}

func TestBulkWithoutTCP(t *testing.T) {
	s := roaming(t, nil)
	s.typing(time.Second, 0)
	s.did = nil
	s.send(10*time.Second, short)
	s.wantWithoutPings("there is no candidate")
}

func TestBulkDoesNotRoam(t *testing.T) {
	s := bulkStory(t, nil)
	s.send(2*BulkInterval, some)
	s.did = nil
	s.tell(NetworkChanged{[]Candidate{lte, over(TCP, lte), boundLTE}})
	s.wantWithoutPings("the path is gone, and with it what was beside it", Dial{ID: 2, Candidate: lte}, Close{1})
	s.tell(Heard{ID: 2})
	s.wantWithoutPings("there is another path", Close{0}, bulkOver(3, over(TCP, lte)))
}

// Where TCP does not open, there are few dials, and QUIC goes on.
func TestBulkDialsThatFail(t *testing.T) {
	s := bulkStory(t, nil)
	for range time.Minute / BulkInterval {
		s.send(BulkInterval, some)
		for id := range s.manager.bulk.carriers {
			s.tell(Down{ID: id})
		}
	}
	if n := dials(s.did); n < 3 || n > 8 {
		t.Errorf("%d dials in a minute, all of which fail", n)
	}
	s.wantState("the path works", Live)
}

// A carrier that dies without a word is replaced.
func TestBulkCarrierIsSilent(t *testing.T) {
	s := bulkStory(t, nil)
	s.send(10*time.Second, some)
	s.wantWithoutPings("it is heard", bulkOver(1, wifiTCP))
	for range 7 * time.Second / BulkInterval {
		s.pass(BulkInterval)
		s.tell(Heard{ID: 0, RTT: some})
		s.tell(Bulk{Limited: true})
	}
	s.wantWithoutPings("it has brought nothing for 6 s", Close{1}, bulkOver(2, wifiTCP))
}

// A dial that nobody answers ends.
func TestBulkDialIsSilent(t *testing.T) {
	s := bulkStory(t, nil)
	for range 7 * time.Second / BulkInterval {
		s.pass(BulkInterval)
		s.tell(Heard{ID: 0, RTT: some})
		s.tell(Bulk{Limited: true})
	}
	s.wantWithoutPings("it has had 6 s", bulkOver(1, wifiTCP), Close{1})
}

func TestAggregate(t *testing.T) {
	s := bulkStory(t, func(c *Config) { c.Paths = Aggregate })
	s.tell(Heard{ID: 1})
	s.typing(time.Second, 0, 1)
	s.did = nil
	s.send(BulkInterval, some)
	s.wantWithoutPings("a backlog goes over both interfaces", bulkOver(2, wifiTCP), bulkOver(3, lteTCP))
	s.tell(Bulk{})
	s.typing(260 * time.Millisecond)
	s.wantState("the first is suspect, the second works", Live)
	s.wantWithoutPings("it takes over without a handshake", Activate{1}, Close{2})
}

// There are more carriers while the path has no queue, and half as many, down to one, while it has one.
func TestBulkCarriersAdapt(t *testing.T) {
	s := bulkStory(t, nil)
	s.send(BulkInterval, short)
	s.wantWithoutPings("it may only begin", bulkOver(1, wifiTCP))
	s.send(time.Second, short)
	s.wantWithoutPings("no queue", bulkOver(2, wifiTCP))
	s.send(time.Second, short)
	s.wantWithoutPings("still none", bulkOver(3, wifiTCP), bulkOver(4, wifiTCP))
	s.send(10*time.Second, short+3*time.Millisecond)
	s.wantWithoutPings("nothing that matters has changed")
	s.send(time.Second, long)
	s.wantWithoutPings("a queue", Close{3}, Close{4})
	s.send(time.Second, long)
	s.wantWithoutPings("which stays", Close{2})
	s.send(5*time.Second, long)
	s.wantWithoutPings("one carrier stays too")
	s.send(ActiveFor-time.Second, short)
	s.wantWithoutPings("it has gone, for now")
	s.send(1500*time.Millisecond, short)
	s.wantWithoutPings("and stays away", bulkOver(5, wifiTCP))
}

// On a short path one carrier is enough.
func TestBulkOnShortPath(t *testing.T) {
	s := bulkStory(t, nil)
	s.tell(Heard{ID: 0, RTT: time.Millisecond})
	s.send(5*time.Second, time.Millisecond)
	s.wantWithoutPings("a backlog lasts", bulkOver(1, wifiTCP))
}
