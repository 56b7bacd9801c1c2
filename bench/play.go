//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/result"
	"github.com/quicterm/quicterm/bench/rig"
)

// A player plays scenarios.
type player struct {
	all     *measurements
	bin     string    // where qt and qtd are
	seed    uint64    // of the links
	until   time.Time // after which nothing is played again; or zero
	slack   float64   // by which bounds are wider; then only those are looked at that hold on any machine
	compare bool      // figures are for comparing: all are spoiled by a busy machine
	commit  string
	machine result.Machine
}

func (p *player) now() time.Time { return time.Now().UTC().Truncate(time.Second) }

// maxRepeats is how often a scenario that missed a bound while the machine was busy is
// played again.
const maxRepeats = 2

// play has a program do a scenario on a stage of its own, and returns a record of each
// metric. Bounds are looked at where there are to be any.
func (p *player) play(newStage func(m *measurement, seed uint64) stage, what program, s scenario, bounds []bound) []result.Record {
	return p.believable(func(repeats int) ([]result.Record, time.Duration) {
		t := &take{player: p, scenario: s, bounds: bounds}
		err := p.all.run(s.name+", "+what.name(), p.bin, func(m *measurement) { t.play(m, newStage(m, p.seed), what) })
		return t.records(what, repeats, err), t.stall
	})
}

// believable measures, and again, at most twice, where a bound is missed, or figures are
// for comparing, and the machine was too busy to be believed, as the longest stall says.
// If it stays so, that is the verdict.
func (p *player) believable(measure func(repeats int) ([]result.Record, time.Duration)) []result.Record {
	for repeats := 0; ; repeats++ {
		records, stall := measure(repeats)
		spoiled := func(r result.Record) bool {
			return r.Verdict == result.Missed || p.compare && r.Verdict == result.Free
		}
		if stall < believed || !slices.ContainsFunc(records, spoiled) {
			return records
		}
		if repeats == maxRepeats || !p.until.IsZero() && time.Now().After(p.until) {
			for i := range records {
				if spoiled(records[i]) {
					records[i].Verdict = result.Busy
				}
			}
			return records
		}
	}
}

// A take is a scenario that is played once.
type take struct {
	*player
	scenario scenario
	bounds   []bound
	figures  []figure
	stall    time.Duration
}

// play sets up the sessions over links that only delay, and does the work over those of
// the scenario.
func (t *take) play(m *measurement, st stage, what program) {
	s := t.scenario
	server := what.serve(m, st)
	j := &job{m: m, scenario: s, over: make(map[*client][]time.Time)}
	self := executable(m)
	var commands []*exec.Cmd
	for n := range s.clients() {
		at := st.seat(m, n, netem.Config{Delay: s.link.Delay})
		j.clients = append(j.clients, &client{seat: at, screen: newScreen(m)})
		command := server.command(at, s.work.shell(self))
		if at.in != nil {
			command = at.in.In(command)
		}
		commands = append(commands, command)
	}
	for i, c := range j.clients {
		c.x = rig.Watch(m, commands[i], c.screen)
	}
	for i, c := range j.clients {
		select {
		case <-c.screen.mark(readyMark):
		case <-c.x.Closed():
			m.Fatalf("client %d ended: %q", i, c.screen.start())
		case <-time.After(rig.Patience):
			m.Fatalf("session %d does not begin: %q", i, c.screen.start())
		}
	}
	time.Sleep(settle)
	for _, c := range j.clients {
		c.Set(s.link)
	}
	var here []int
	for _, c := range j.clients {
		here = append(here, family(c.x.Cmd.Process.Pid)...)
	}
	costs := newCosts(m, j, here, server.processes(m))
	stalls := func() time.Duration { return 0 }
	stop := make(chan struct{})
	var events sync.WaitGroup
	j.onBegin = func() {
		costs.begin()
		stalls = watchStalls()
		events.Go(func() { m.guard(func() { j.happen(stop) }) })
	}
	j.onEnd = costs.end
	defer func() { t.stall = stalls() }()
	defer events.Wait()
	defer close(stop)
	t.figures = append(s.work.run(j), costs.figures()...)
}

// happen has the events happen.
func (j *job) happen(stop <-chan struct{}) {
	for _, e := range j.scenario.events {
		select {
		case <-time.After(time.Until(j.started.Add(e.at))):
		case <-stop:
			return
		}
		for _, c := range j.clients {
			e.do(c.link, j.scenario.link)
			if e.ends {
				j.mu.Lock()
				j.over[c] = append(j.over[c], time.Now())
				j.mu.Unlock()
			}
		}
	}
}

// records returns what there is to tell of a take, which may have failed.
func (t *take) records(what program, repeats int, err error) []result.Record {
	s := t.scenario
	record := result.Record{
		Time: t.now(), Commit: t.commit, Machine: t.machine,
		Scenario: s.name, Program: what.name(),
		Loss: s.link.Loss, RTT: inMS(s.rtt()),
		StallMS: inMS(t.stall), Repeats: repeats, Seed: t.seed,
	}
	for _, e := range s.events {
		record.Events = append(record.Events, result.Event{At: e.at.Seconds(), What: e.what})
	}
	if err != nil {
		record.Metric, record.Verdict, record.Why = "complete", result.Failed, oneLine(err)
		return []result.Record{record}
	}
	var records []result.Record
	for _, f := range t.figures {
		r := record
		r.Metric, r.Unit, r.Values, r.At, r.Portable, r.Why = f.metric, f.unit, f.values, f.at, f.portable, f.note
		if t.slack == 0 || f.portable {
			r.Bound, r.Verdict = verdict(r, t.bounds, s.rtt(), max(t.slack, 1))
		}
		if f.never != "" {
			r.Verdict, r.Why = result.Never, f.never
		}
		records = append(records, r)
	}
	return records
}

// verdict returns the bounds of a record as text, and what became of them. With slack,
// they are wider by a factor.
func verdict(r result.Record, bounds []bound, rtt time.Duration, slack float64) (text, verdict string) {
	var texts []string
	for _, b := range bounds {
		if b.metric != r.Metric {
			continue
		}
		b = b.widened(slack)
		texts = append(texts, b.text(rtt))
		if verdict == result.Free {
			verdict = result.OK
		}
		if !b.kept(r, rtt) {
			verdict = result.Missed
		}
	}
	return strings.Join(texts, ", "), verdict
}

// oneLine returns an error as one line of text.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// family returns a process and those that it has started.
func family(pid int) []int {
	pids := []int{pid}
	for i := 0; i < len(pids); i++ {
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pids[i], pids[i]))
		for _, field := range strings.Fields(string(children)) {
			var child int
			if _, err := fmt.Sscan(field, &child); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}
