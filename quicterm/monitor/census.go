//go:build linux || darwin

package monitor

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quicterm/quicterm/quicterm/machine/memory"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/prometheus"
	"github.com/quicterm/quicterm/quicterm/quota"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// An inspected is a session whose holder has told of it.
type inspected struct {
	id     wire.SessionID
	uid    uint32
	report wire.Report
}

const (
	// maxFollowed bounds how many sessions of an account are followed, each with a descriptor: an
	// account can make more sockets.
	maxFollowed = 2000

	// maxCount bounds what one report adds to a count: an account can make its holders claim
	// anything, and the sum must stay a number that grows.
	maxCount = 1 << 32
)

// A census is what the daemon knows of all sessions. It is safe for concurrent use. The zero value is empty.
type census struct {
	measuring sync.Mutex
	measured  time.Time
	numbers   *privsep.Numbers

	mu       sync.Mutex
	followed map[wire.SessionID]*followed
	killed   quota.Recent[wire.SessionID, bool] // holders; their clients come back within seconds, and learn it
}

// A followed is a session whose end is waited for.
type followed struct {
	uid     uint32
	account string // empty if the session is older than the daemon
	name    string
	counted [3]uint64 // gaps, duplicates and corrupted frames, as last reported
}

// inspectAll returns the sessions of all accounts, and how many sessions and accounts have not answered. It blocks for
// at most censusTime, whatever the accounts have in place of their holders.
func (s *Sessions) inspectAll(ctx context.Context) (all []inspected, silent int) {
	type answer struct {
		sessions []inspected
		silent   int
	}
	inspect := func(ctx context.Context, uid uint32) (answer, error) {
		sessions, silent := s.inspectAccount(ctx, uid)
		return answer{sessions, silent}, nil
	}
	answers, silent := askAccounts(ctx, s, censusTime, s.holders.Accounts(), inspect)
	for _, one := range answers {
		all, silent = append(all, one.sessions...), silent+one.silent
	}
	return all, silent
}

func (s *Sessions) inspectAccount(ctx context.Context, uid uint32) (all []inspected, silent int) {
	ctx, cancel := context.WithTimeout(ctx, inspectTime)
	defer cancel()
	q := question{log: s.log, uid: uid, ids: s.holders.Sessions(uid), open: &wire.Open{}, request: &wire.Inspect{}}
	all, silent = askHolders(ctx, s, q, func(id wire.SessionID, answer wire.Message) (inspected, error) {
		r, err := s.checkReport(id, answer)
		return inspected{id, uid, r}, err
	})
	slices.SortFunc(all, func(a, b inspected) int { return slices.Compare(a.id[:], b.id[:]) })
	return all, silent
}

// checkReport reads a holder's answer, and bounds what it claims.
func (s *Sessions) checkReport(id wire.SessionID, answer wire.Message) (r wire.Report, err error) {
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
	s.tally(id, r)
	return r, nil
}

// tally adds what a followed session has counted since its report before.
func (s *Sessions) tally(id wire.SessionID, r wire.Report) {
	s.census.mu.Lock()
	defer s.census.mu.Unlock()
	f := s.census.followed[id]
	if f == nil {
		return
	}
	reported := countsOf(r)
	for i, total := range []*atomic.Uint64{&s.counts.gaps, &s.counts.duplicates, &s.counts.corrupted} {
		total.Add(min(reported[i]-min(reported[i], f.counted[i]), maxCount))
	}
	f.counted = reported
}

func countsOf(r wire.Report) [3]uint64 { return [...]uint64{r.Gaps, r.Duplicates, r.Corrupted} }

// followAll follows the sessions that are older than the daemon: an earlier one has counted what they report first.
func (s *Sessions) followAll(ctx context.Context) error {
	all, _ := s.inspectAll(ctx)
	for _, one := range all {
		s.follow(one.id, &followed{uid: one.uid, name: one.report.Name, counted: countsOf(one.report)})
	}
	<-ctx.Done()
	return nil
}

// follow logs the end of a session when it comes, unless the session is followed already.
func (s *Sessions) follow(id wire.SessionID, f *followed) {
	c := &s.census
	c.mu.Lock()
	defer c.mu.Unlock()
	ofAccount := 0
	for _, other := range c.followed {
		if other.uid == f.uid {
			ofAccount++
		}
	}
	if c.followed[id] != nil || ofAccount >= maxFollowed {
		return
	}
	if c.followed == nil {
		c.followed = make(map[wire.SessionID]*followed)
	}
	if s.spawn(func() {
		s.contain(s.log, func() error { s.awaitEnd(id, f); return nil })
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.followed, id)
	}) {
		c.followed[id] = f
	}
}

func (s *Sessions) sessionName(id wire.SessionID) string {
	s.census.mu.Lock()
	defer s.census.mu.Unlock()
	if f := s.census.followed[id]; f != nil {
		return f.name
	}
	return ""
}

// rename records that a session which is followed has another name.
func (c *census) rename(id wire.SessionID, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.followed[id]; f != nil {
		f.name = name
	}
}

// wasKilled reports whether the holder of a session was killed, and no other one has restored the session.
func (c *census) wasKilled(id wire.SessionID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	killed, _ := c.killed.Get(id)
	return killed
}

func (c *census) setKilled(id wire.SessionID, killed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.killed.Put(id, killed)
}

// awaitEnd blocks until a session is over, and logs that.
func (s *Sessions) awaitEnd(id wire.SessionID, f *followed) {
	answer, err := s.holders.Await(s.life, f.uid, id)
	for err != nil && s.life.Err() == nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, io.EOF) {
		select {
		case <-s.life.Done():
		case <-time.After(followPause):
			answer, err = s.holders.Await(s.life, f.uid, id)
		}
	}
	if s.life.Err() != nil || err == nil && answer.Type == wire.TypeError {
		return // it does not tell, as a program of the account in the holder's place may
	}
	if errors.Is(err, io.EOF) {
		s.census.setKilled(id, true)
		err = errors.New("its holder was killed")
	}
	var r wire.Report
	if err == nil {
		err = answer.Decode(&r)
	}
	log := s.log.With("session", s.sessionName(id), "id", id.Short(), "uid", f.uid)
	if f.account != "" {
		log = log.With("account", f.account)
	}
	if err != nil {
		log.Warn("session is over", "event", "end", "error", err)
	} else {
		s.tally(id, r)
		log.Info("session is over", "event", "end", "status", r.Status, "reason", r.Reason)
	}
	s.counts.ended.Add(1)
}

// Measure asks all sessions and returns the counts. What was measured less than leastAge ago counts.
func (s *Monitor) Measure(context.Context) (*privsep.Numbers, error) {
	c := &s.census
	c.measuring.Lock()
	defer c.measuring.Unlock()
	if time.Since(c.measured) >= leastAge {
		// Not with the context of a request: its end would make the numbers wrong for all others.
		c.numbers = s.measure(s.inspectAll(s.life))
		c.measured = time.Now()
	}
	return c.numbers, nil
}

// measure returns the numbers of the moment. Sessions are all that have answered.
func (s *Monitor) measure(sessions []inspected, silent int) *privsep.Numbers {
	usage, c := privsep.UsageOfProcess(), &s.counts
	n := privsep.Numbers{
		"quicterm_sessions_silent":                      float64(silent),
		"quicterm_memory_bytes":                         float64(memory.OfProcess()),
		`quicterm_cpu_seconds_total{process="monitor"}`: usage.CPU.Seconds(),
		`quicterm_open_descriptors{process="monitor"}`:  float64(usage.Descriptors),
		"quicterm_sessions_started_total":               float64(c.started.Load()),
		"quicterm_sessions_ended_total":                 float64(c.ended.Load()),
		"quicterm_grants_total":                         float64(c.grants.Load()),
		`quicterm_refusals_total{reason="grant"}`:       float64(c.refused.Load()),
		"quicterm_gaps_total":                           float64(c.gaps.Load()),
		"quicterm_duplicates_total":                     float64(c.duplicates.Load()),
		"quicterm_crc_faults_total":                     float64(c.corrupted.Load()),
	}
	for _, state := range []string{"attached", "detached", "exited"} {
		n[prometheus.Series("quicterm_sessions", "state", state)] = 0
	}
	for _, version := range []string{"same", "other"} {
		n[prometheus.Series("quicterm_holders", "version", version)] = 0
	}
	for _, one := range sessions {
		r := one.report
		n[prometheus.Series("quicterm_sessions", "state", stateName(r.Phase))]++
		version := "other" // a holder can claim any: the name of the version is no label
		if r.Software == s.software {
			version = "same"
		}
		n[prometheus.Series("quicterm_holders", "version", version)]++
		n["quicterm_ring_bytes"] += float64(r.Ring)
		n["quicterm_ring_limit_bytes"] += float64(r.Capacity)
		n["quicterm_output_bytes"] += float64(r.Memory)
	}
	return &n
}
