//go:build linux || darwin

package monitor

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// An inspected is a session whose holder has told of it.
type inspected struct {
	id     wire.SessionID
	uid    uint32
	report wire.Report
}

const (
	// censusTime bounds how long all accounts are asked, whose file systems may not answer, and
	// inspectTime the holders of one. Prometheus waits 10 s by default.
	censusTime, inspectTime = 4 * time.Second, 3 * time.Second

	// maxFollowed bounds how many sessions of an account are followed, each with a descriptor: an
	// account can make more sockets.
	maxFollowed = 2000

	// followPause is the time before a holder that could not be asked is asked again.
	followPause = time.Minute

	// maxKilled bounds the sessions of which it is known that their holders were killed: their clients
	// come back within seconds, and learn it.
	maxKilled = 1024

	// maxCount bounds what one report adds to a count: an account can make its holders claim
	// anything, and the sum must stay a number that grows.
	maxCount = 1 << 32
)

// leastAge is how old numbers may be that are told again: each account may ask for them any number of
// times, and asking uses what the accounts may have asked.
const leastAge = time.Second

// A census asks all sessions. It is safe for concurrent use.
type census struct {
	renewing sync.Mutex
	renewed  time.Time
	numbers  *privsep.Numbers

	turn chan struct{} // holds one while all accounts are asked

	mu       sync.Mutex
	asking   map[uint32]bool                           // accounts of which an earlier question is not answered yet
	known    map[uint32]map[wire.SessionID]wire.Report // counts of the sessions that an account has
	followed map[wire.SessionID]string                 // names of the sessions whose end is waited for
	perUser  map[uint32]int                            // how many of those an account has
	killed   []wire.SessionID                          // of which the holders were killed, the last maxKilled
}

func newCensus() census {
	return census{
		turn: make(chan struct{}, 1), asking: make(map[uint32]bool), known: make(map[uint32]map[wire.SessionID]wire.Report),
		followed: make(map[wire.SessionID]string), perUser: make(map[uint32]int),
	}
}

// inspectAll returns the sessions of all accounts, and how many have not answered. It blocks while it
// runs elsewhere, as that would make accounts look silent, and then for at most censusTime, whatever
// the accounts have in place of their holders.
func (s *Sessions) inspectAll(ctx context.Context) (all []inspected, silent int) {
	select {
	case s.census.turn <- struct{}{}:
		defer func() { <-s.census.turn }()
	case <-ctx.Done():
		return nil, len(s.holders.Accounts())
	}
	ctx, cancel := context.WithTimeout(ctx, censusTime)
	defer cancel()
	type answer struct {
		sessions []inspected
		silent   int
	}
	answers := make(chan answer)
	waiting := 0
	for _, uid := range s.holders.Accounts() {
		var a answer
		begun := s.census.begin(s, uid, func() { a.sessions, a.silent = s.inspectAccount(ctx, uid) }, func() {
			select {
			case answers <- a:
			case <-ctx.Done():
			}
		})
		if begun {
			waiting++
		} else {
			silent++
		}
	}
	for ; waiting > 0; waiting-- {
		select {
		case a := <-answers:
			all, silent = append(all, a.sessions...), silent+a.silent
		case <-ctx.Done():
			return all, silent + waiting
		}
	}
	return all, silent
}

// renew returns what f returns now, or has returned within leastAge.
func (c *census) renew(f func() *privsep.Numbers) *privsep.Numbers {
	c.renewing.Lock()
	defer c.renewing.Unlock()
	if time.Since(c.renewed) >= leastAge {
		c.numbers = f()
		c.renewed = time.Now()
	}
	return c.numbers
}

// begin calls ask in a goroutine, and answered when the account can be asked again, unless an earlier question to the
// account is not answered yet or the daemon ends.
func (c *census) begin(s *Sessions, uid uint32, ask, answered func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asking[uid] || s.life.Err() != nil {
		return false
	}
	c.asking[uid] = true
	s.work.Go(func() {
		func() {
			defer c.end(uid)
			ask()
		}()
		answered()
	})
	return true
}

func (c *census) end(uid uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.asking, uid)
}

// forget forgets the counts of all sessions of an account except ids and those that are followed: an
// account can make and remove any number of sockets.
func (c *census) forget(uid uint32, ids []wire.SessionID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := make(map[wire.SessionID]bool, len(ids))
	for _, id := range ids {
		kept[id] = true
	}
	maps.DeleteFunc(c.known[uid], func(id wire.SessionID, _ wire.Report) bool {
		_, followed := c.followed[id]
		return !kept[id] && !followed
	})
}

// inspectAccount returns the sessions of an account, and how many have not answered.
func (s *Sessions) inspectAccount(ctx context.Context, uid uint32) (all []inspected, silent int) {
	ctx, cancel := context.WithTimeout(ctx, inspectTime)
	defer cancel()
	end, err := s.accounts.requests.Take(ctx, uid)
	if err != nil {
		return nil, 1
	}
	defer end()
	ids := s.holders.Sessions(uid)
	s.census.forget(uid, ids)
	if err := s.accounts.asks.Of(uid).WaitN(ctx, leastAsks+len(ids)); err != nil {
		return nil, len(ids)
	}
	askEach(s, s.log, ids, func(id wire.SessionID) (wire.Report, error) {
		return s.inspect(ctx, uid, id)
	}, func(id wire.SessionID, r wire.Report, err error) {
		switch {
		case err == nil:
			all = append(all, inspected{id, uid, r})
		case !errors.Is(err, fs.ErrNotExist):
			silent++
		}
	})
	slices.SortFunc(all, func(a, b inspected) int { return slices.Compare(a.id[:], b.id[:]) })
	return all, silent
}

// inspect asks a holder for its report.
func (s *Sessions) inspect(ctx context.Context, uid uint32, id wire.SessionID) (r wire.Report, err error) {
	request, err := wire.New(&wire.Inspect{})
	if err != nil {
		return r, err
	}
	answer, err := s.holders.Ask(ctx, uid, id, &wire.Open{}, request)
	if err != nil {
		return r, err
	}
	if err := answer.Decode(&r); err != nil {
		return r, err
	}
	if !wire.ValidName(r.Name) {
		return r, errors.New("the session has no name")
	}
	limit := uint64(s.settings().BufferSize.Bytes) // no session takes more, whatever its holder claims
	r.Memory, r.Ring, r.Capacity = min(r.Memory, limit), min(r.Ring, limit), min(r.Capacity, limit)
	// JSON has no times after the year 9999: one holder must not hide the other sessions from an operator.
	now := time.Now().Unix()
	r.Since, r.Created = min(max(r.Since, 0), now), min(max(r.Created, 0), now)
	s.tally(uid, id, r)
	return r, nil
}

// tally adds what a session has counted since its report before. Of a session that is older than
// the daemon, the first report adds nothing: an earlier daemon has counted that.
func (s *Sessions) tally(uid uint32, id wire.SessionID, r wire.Report) {
	s.census.mu.Lock()
	defer s.census.mu.Unlock()
	known := s.census.known[uid]
	if known == nil {
		known = make(map[wire.SessionID]wire.Report)
		s.census.known[uid] = known
	}
	before, ok := known[id]
	known[id] = wire.Report{Gaps: r.Gaps, Duplicates: r.Duplicates, Corrupted: r.Corrupted}
	if !ok && r.Created < s.begun.Unix() {
		return
	}
	since := func(now, before uint64) uint64 { return min(now-min(now, before), maxCount) }
	s.counts.gaps.Add(since(r.Gaps, before.Gaps))
	s.counts.duplicates.Add(since(r.Duplicates, before.Duplicates))
	s.counts.corrupted.Add(since(r.Corrupted, before.Corrupted))
}

// followAll follows the sessions that are older than the daemon.
func (s *Sessions) followAll(ctx context.Context) error {
	all, _ := s.inspectAll(ctx)
	for _, one := range all {
		s.follow(one.uid, one.id, one.report.Name, "")
	}
	<-ctx.Done()
	return nil
}

// follow logs the end of a session when it comes, unless the session is followed already.
func (s *Sessions) follow(uid uint32, id wire.SessionID, name, account string) {
	c := &s.census
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.followed[id]; ok || c.perUser[uid] >= maxFollowed || s.life.Err() != nil {
		return
	}
	c.followed[id] = name
	c.perUser[uid]++
	s.work.Go(func() {
		s.contain(s.log, func() error { s.awaitEnd(uid, id, account); return nil })
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.followed, id)
		delete(c.known[uid], id)
		if c.perUser[uid]--; c.perUser[uid] == 0 {
			delete(c.perUser, uid)
		}
	})
}

// sessionName returns the name of a session that is followed.
func (s *Sessions) sessionName(id wire.SessionID) string {
	s.census.mu.Lock()
	defer s.census.mu.Unlock()
	return s.census.followed[id]
}

// rename records that a session which is followed has another name.
func (c *census) rename(id wire.SessionID, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.followed[id]; ok {
		c.followed[id] = name
	}
}

// wasKilled reports whether the holder of a session was killed, and no other one has restored the session.
func (c *census) wasKilled(id wire.SessionID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.killed, id)
}

// setKilled says whether the holder of a session was killed.
func (c *census) setKilled(id wire.SessionID, killed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.killed = slices.DeleteFunc(c.killed, func(other wire.SessionID) bool { return other == id })
	if killed {
		c.killed = append(c.killed[max(len(c.killed)-maxKilled+1, 0):], id)
	}
}

// awaitEnd blocks until a session is over, and logs that.
func (s *Sessions) awaitEnd(uid uint32, id wire.SessionID, account string) {
	answer, err := s.holders.Await(s.life, uid, id)
	for err != nil && s.life.Err() == nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, io.EOF) {
		select {
		case <-s.life.Done():
		case <-time.After(followPause):
			answer, err = s.holders.Await(s.life, uid, id)
		}
	}
	if errors.Is(err, io.EOF) {
		s.census.setKilled(id, true)
	}
	var r wire.Report
	if s.life.Err() != nil {
		return
	}
	if err == nil && answer.Type == wire.TypeError {
		return // it does not tell, as a program of the account in the holder's place may
	}
	if err == nil {
		err = answer.Decode(&r)
	}
	log := s.log.With("session", s.sessionName(id), "id", id.Short(), "uid", uid)
	if account != "" {
		log = log.With("account", account)
	}
	if err != nil {
		log.Warn("session is over", "event", "end", "error", err)
	} else {
		s.tally(uid, id, r)
		log.Info("session is over", "event", "end", "status", r.Status, "reason", r.Reason)
	}
	s.counts.ended.Add(1)
}
