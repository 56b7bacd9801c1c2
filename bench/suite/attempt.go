//go:build linux

package suite

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quicterm/quicterm/bench/event"
	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/program"
	"github.com/quicterm/quicterm/bench/result"
	"github.com/quicterm/quicterm/bench/scenario"
	"github.com/quicterm/quicterm/bench/topology"
	"github.com/quicterm/quicterm/bench/work"
)

// startAtOnce is how many sessions are started at once.
const startAtOnce = 20

// maxRepeats is how often a scenario is measured again on a busy machine.
const maxRepeats = 2

// bounds returns the bounds that the scenario's program is to keep.
func (s *Suite) bounds(sc scenario.Scenario) []scenario.Bound {
	if s.ComparesPrograms {
		return nil
	}
	return sc.Bounds
}

// measure measures a scenario, and returns the records of its program and its rivals.
func (s *Suite) measure(sc scenario.Scenario) []result.Record {
	return s.retryIfBusy(func(repeats int) ([]result.Record, time.Duration) {
		var rivals []result.Record
		longest := time.Duration(0)
		attempt := func(sc scenario.Scenario, p program.Program, bounds []scenario.Bound) []result.Record {
			a := &attempt{suite: s, Scenario: sc}
			err := s.Group.Run(sc.Name+", "+p.Name(), s.bin, func(t *measure.T) { a.run(t, p) })
			longest = max(longest, a.stall)
			return a.records(p, bounds, rivals, repeats, err)
		}
		calm := sc
		calm.Work = work.Calm(sc.Work)
		for _, p := range sc.Rivals {
			if p.Missing() == "" {
				rivals = append(rivals, attempt(calm, p, nil)...)
			}
		}
		return append(attempt(sc, sc.Program, s.bounds(sc)), rivals...), longest
	})
}

// retryIfBusy measures again, at most maxRepeats times, if the machine was too busy and a
// bound was missed, or the figures are for comparing programs. If the machine stays busy,
// that is the verdict.
func (s *Suite) retryIfBusy(attempt func(repeats int) ([]result.Record, time.Duration)) []result.Record {
	for repeats := 0; ; repeats++ {
		records, stall := attempt(repeats)
		doubtful := func(r result.Record) bool {
			return r.Verdict == result.Missed || s.ComparesPrograms && r.Verdict == result.Free
		}
		if stall < measure.MaxStall || !slices.ContainsFunc(records, doubtful) {
			return records
		}
		if repeats == maxRepeats || !s.retryUntil.IsZero() && time.Now().After(s.retryUntil) {
			for i := range records {
				if doubtful(records[i]) {
					records[i].Verdict = result.Busy
				}
			}
			return records
		}
	}
}

// An attempt is a scenario that is measured once, with one program.
type attempt struct {
	suite *Suite
	scenario.Scenario
	figures []work.Figure
	stall   time.Duration
}

// run opens the sessions over links that only delay, and does the work over the links of
// the scenario.
func (a *attempt) run(t *measure.T, p program.Program) {
	on := a.topology(t)
	server := p.Serve(t, on)
	j := &work.Job{T: t, Host: on.Host(), Server: server, Link: a.Link, Stagger: a.Stagger}
	for _, e := range a.Events {
		if e.Ends {
			j.Ends = append(j.Ends, e.At)
		}
	}
	shell := a.Work.Shell(work.Executable(t))
	for n := range a.Clients() {
		m := on.Machine(t, n, netem.Config{Delay: a.Link.Delay})
		j.Clients = append(j.Clients, work.NewClient(n, m, server.Command(m, shell)))
	}
	for some := range slices.Chunk(j.Clients, startAtOnce) {
		for _, c := range some {
			c.Start(t)
		}
		for _, c := range some {
			c.AwaitReady(t)
		}
	}
	time.Sleep(work.Settle)
	for _, c := range j.Clients {
		c.Set(a.Link)
	}
	cost := newCost(t, j, a.Scenario)
	stalls := func() time.Duration { return 0 }
	stop := make(chan struct{})
	var events sync.WaitGroup
	j.OnBegin = func() {
		cost.begin()
		stalls = measure.WatchStalls()
		events.Go(func() { t.Guard(func() { a.happen(j, cost, stop) }) })
	}
	j.OnEnd = cost.end
	defer func() { a.stall = stalls() }()
	defer events.Wait()
	defer close(stop)
	a.figures = a.Work.Run(j)
	if _, own := a.Work.(work.OwnSessions); !own {
		a.figures = append(a.figures, cost.figures()...)
	}
}

func (a *attempt) topology(t *measure.T) topology.Topology {
	o := topology.Options{Seed: a.suite.Seed, Interfaces: a.Interfaces, DualStack: a.DualStack}
	if a.Namespaces || a.suite.ComparesPrograms {
		return topology.NewNamespaces(t, o)
	}
	return topology.NewLoopback(t, o)
}

// An occurrence is an event at a time: to a client, or to the server if client is nil.
type occurrence struct {
	event.Event
	at     time.Time
	client *work.Client
}

// happen makes the events happen, until stop is closed.
func (a *attempt) happen(j *work.Job, cost *cost, stop <-chan struct{}) {
	var all []occurrence
	for _, e := range a.Events {
		if e.Server != nil {
			all = append(all, occurrence{e, j.At(e.At, 0), nil})
			continue
		}
		for _, c := range j.Clients {
			all = append(all, occurrence{e, j.At(e.At, c.Number), c})
		}
	}
	slices.SortStableFunc(all, func(a, b occurrence) int { return a.at.Compare(b.at) })
	for _, o := range all {
		select {
		case <-time.After(time.Until(o.at)):
		case <-stop:
			return
		}
		began, affected := time.Now(), j.Clients
		if c := o.client; c != nil {
			cost.happens(c, o.Ends)
			o.Client(event.Client{Machine: c.Machine, Number: c.Number, Usual: a.Link, Process: c.Terminal.Cmd.Process})
			affected = []*work.Client{c}
		} else {
			o.Server(j.Host)
			began = time.Now() // the server is there when that returns
		}
		if done := time.Now(); o.Ends {
			for _, c := range affected {
				j.Happened(c, began, done)
			}
		}
	}
}

// records returns the records of an attempt, which may have failed.
func (a *attempt) records(p program.Program, bounds []scenario.Bound, rivals []result.Record, repeats int,
	err error) []result.Record {
	record := a.suite.record(a.Name, p.Name())
	record.Loss, record.RTT = a.Link.Loss, measure.Milliseconds(a.RTT())
	record.Stagger = a.Stagger.Seconds()
	record.Growth, record.Size = a.Growth, a.Size
	record.StallMS, record.Repeats = measure.Milliseconds(a.stall), repeats
	for _, e := range a.Events {
		record.Events = append(record.Events, result.Event{At: e.At.Seconds(), What: e.What})
	}
	if err != nil {
		record.Metric, record.Verdict, record.Why = "complete", result.Failed, oneLine(err)
		return []result.Record{record}
	}
	var records []result.Record
	for _, f := range a.figures {
		r := record
		r.Metric, r.Unit, r.Values, r.At, r.Portable, r.Why = f.Metric, f.Unit, f.Values, f.At, f.Portable, f.Note
		if slack := a.suite.slack; slack == 0 || f.Portable {
			r.Bound, r.Verdict = scenario.Verdict(r, bounds, a.RTT(), max(slack, 1), rivals)
		}
		if f.Never != "" {
			r.Verdict, r.Why = result.Never, f.Never
		}
		records = append(records, r)
	}
	return records
}

// oneLine returns an error as one line of text.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
