//go:build linux

package suite

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/event"
	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/program"
	"github.com/quicterm/quicterm/bench/result"
	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/bench/scenario"
	"github.com/quicterm/quicterm/bench/topology"
	"github.com/quicterm/quicterm/bench/work"
)

// TestMain also runs the programs of sessions.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if run := work.Programs[os.Args[1]]; run != nil {
			if err := run(os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		}
	}
	if status, ok := rig.WithoutStartupFiles(); ok {
		os.Exit(status)
	}
	status := m.Run()
	if dir := built.Load(); dir != nil {
		os.RemoveAll(*dir)
	}
	os.Exit(status)
}

var built atomic.Pointer[string] // what build returns

// build builds the programs once, for all tests.
var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "qt")
	if err != nil {
		return "", err
	}
	built.Store(&dir)
	return dir, rig.Build(dir)
})

// testSuite measures programs that are built for the tests.
func testSuite(t *testing.T) *Suite {
	t.Helper()
	if testing.Short() {
		t.Skip("builds the programs")
	}
	dir, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return &Suite{Group: new(measure.Group), bin: dir, Seed: 1, slack: 10}
}

// wantMetric returns the record of a metric.
func wantMetric(t *testing.T, records []result.Record, metric string) result.Record {
	t.Helper()
	for _, r := range records {
		if r.Program == "quicterm" && r.Metric == metric {
			return r
		}
	}
	t.Fatalf("no %s in %+v", metric, records)
	return result.Record{}
}

func TestAttempt(t *testing.T) {
	t.Parallel()
	s := testSuite(t)
	near := netem.Config{Delay: 10 * time.Millisecond}
	t.Run("typing", func(t *testing.T) {
		t.Parallel()
		const begins, takes = 200 * time.Millisecond, 60 * time.Millisecond
		slowly := event.Event{At: begins, What: "another address", Ends: true, Client: func(c event.Client) {
			time.Sleep(takes)
			c.Links[0].Readdress()
		}}
		const pace = 50 * time.Millisecond
		records := s.measure(quicterm(scenario.Scenario{
			Name: "typing", Link: near, Sessions: 2, Work: work.Typing{Pace: pace, Spans: work.Keys(20, pace), Exact: true},
			Events: []event.Event{slowly},
			Bounds: []scenario.Bound{{Metric: "truth", Quantile: 0.5, RTTs: 1, Plus: 50}},
		}))
		if r := wantMetric(t, records, "complete"); len(r.Values) != 2 || r.Quantile(0) != 1 || r.Why != "" {
			t.Errorf("%+v", r)
		}
		for metric, n := range map[string]int{"truth": 40, "back": 2} {
			r := wantMetric(t, records, metric)
			if len(r.Values) != n || len(r.At) != n || r.Quantile(0) < 20 || r.Unit != "ms" {
				t.Errorf("%+v", r)
			}
		}
		for i, at := range wantMetric(t, records, "back").At {
			if over := (begins + time.Duration(i+1)*takes).Seconds(); at < over {
				t.Errorf("client %d: the key of %.3f s is taken for one after %.3f s", i, at, over)
			}
		}
		if r := wantMetric(t, records, "truth"); r.Verdict != result.OK || len(r.Events) != 1 || r.RTT != 20 {
			t.Errorf("%+v", r)
		}
		for _, metric := range []string{"wire", "client memory", "server memory"} {
			if r := wantMetric(t, records, metric); len(r.Values) != 1 || r.Values[0] < 0.1 {
				t.Errorf("%+v", r)
			}
		}
	})
	t.Run("a ring, and clients that return", func(t *testing.T) {
		t.Parallel()
		records := s.measure(quicterm(scenario.Scenario{Name: "ring", Work: work.Ring{Size: 1 << 20}, Growth: "MiB of ring",
			Size: 1}))
		for _, metric := range []string{"append", "own memory", "resume"} {
			if r := wantMetric(t, records, metric); len(r.Values) != 1 || r.Values[0] <= 0 || r.Size != 1 {
				t.Errorf("%+v", r)
			}
		}
		records = s.measure(quicterm(scenario.Scenario{Name: "return",
			Work: work.Returning{Clients: 3, Outage: 300 * time.Millisecond}}))
		if r := wantMetric(t, records, "back"); len(r.Values) != 3 || r.Why != "" {
			t.Errorf("%+v", r)
		}
	})
	t.Run("output", func(t *testing.T) {
		t.Parallel()
		records := s.measure(quicterm(scenario.Scenario{
			Name: "output", Link: near, Work: work.Output{Lasts: 2 * time.Second, Rate: 100_000, Late: rig.Patience},
			Events: event.BlackHole(500*time.Millisecond, time.Second),
		}))
		if r := wantMetric(t, records, "complete"); len(r.Values) != 1 || r.Values[0] != 1 || r.Why != "" {
			t.Errorf("%+v", r)
		}
		if r := wantMetric(t, records, "back"); len(r.Values) != 1 || r.Values[0] < 10 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("Ctrl-C and cat", func(t *testing.T) {
		t.Parallel()
		slow := netem.Config{Delay: 10 * time.Millisecond, Rate: 8_000_000}
		records := s.measure(quicterm(scenario.Scenario{
			Name: "yes", Link: slow, Work: work.CtrlC{Command: work.Yes, Times: 1, Used: 300 * time.Millisecond},
		}))
		if r := wantMetric(t, records, "prompt"); len(r.Values) != 1 || r.Quantile(0) < 20 || r.Verdict != result.Free {
			t.Errorf("%+v", r)
		}
		records = s.measure(quicterm(scenario.Scenario{
			Name: "cat", Link: near, Work: work.Cat{Size: 1_000_000, Times: 2, Limit: rig.Patience},
		}))
		if r := wantMetric(t, records, "complete"); r.Quantile(0) != 1 || r.Why != "" {
			t.Errorf("%+v", r)
		}
		if r := wantMetric(t, records, "rate"); len(r.Values) != 2 || r.Quantile(0) <= 0 || r.Verdict != result.Free {
			t.Errorf("%+v", r)
		}
	})
	t.Run("a client that ends", func(t *testing.T) {
		t.Parallel()
		records := s.measure(scenario.Scenario{Name: "broken", Work: work.Idle{}, Program: broken{}})
		if len(records) != 1 || records[0].Verdict != result.Failed || !strings.Contains(records[0].Why, "no such host") {
			t.Errorf("%+v", records)
		}
	})
}

// A session recovers from a restart of the daemon.
func TestAttemptOfRestart(t *testing.T) {
	t.Parallel()
	s := testSuite(t)
	const pace = 50 * time.Millisecond
	records := s.measure(quicterm(scenario.Scenario{
		Name: "restart", Work: work.Leaks{Settle: time.Second,
			Work: work.Typing{Pace: pace, Spans: work.Keys(60, pace), Recovery: true, Exact: true}},
		Events: event.KillDaemon(500*time.Millisecond, time.Second, nil),
		Bounds: []scenario.Bound{{Metric: "recovery", Quantile: 1, Plus: 1000}},
	}))
	if r := wantMetric(t, records, "recovery"); len(r.Values) != 1 || r.Verdict != result.OK {
		t.Errorf("%+v", r)
	}
	if r := wantMetric(t, records, "complete"); r.Quantile(0) != 1 || r.Why != "" {
		t.Errorf("%+v", r)
	}
	if r := wantMetric(t, records, "sessions"); len(r.Values) != 1 || r.Values[0] != 0 {
		t.Errorf("%+v", r)
	}
}

// A bound may compare with what a rival does.
func TestAttemptWithRival(t *testing.T) {
	t.Parallel()
	s := testSuite(t)
	const pace = 20 * time.Millisecond
	records := s.measure(quicterm(scenario.Scenario{
		Name: "typing", Work: work.Typing{Pace: pace, Spans: work.Keys(20, pace)},
		Rivals: []program.Program{program.Bare{}},
		Bounds: []scenario.Bound{{Metric: "truth", Quantile: 0.5, Rival: program.Bare{}.Name(), Times: 1, Plus: 100}},
	}))
	if r := wantMetric(t, records, "truth"); r.Verdict != result.OK || r.Bound != "p50 10 x bare terminal + 1000" {
		t.Errorf("%+v", r)
	}
	if last := records[len(records)-1]; last.Program != "bare terminal" || last.Bound != "" {
		t.Errorf("%+v", last)
	}
}

// A rival is measured without the attack, and a bound may compare with it.
func TestAttemptOfAttack(t *testing.T) {
	t.Parallel()
	s := testSuite(t)
	calm := program.Quicterm{Variant: "calm"}
	const pace = 20 * time.Millisecond
	for _, c := range []struct {
		needs  func() error
		attack work.Attack
		wrap   func(q program.Quicterm) program.Program
	}{
		{work.NeedsRoot, work.Attack{What: "hostile", Sockets: 5, Sources: 2, Connections: 30},
			func(q program.Quicterm) program.Program { return q }},
		{rig.CanHang, work.Attack{What: "hung", Sources: 2, Connections: 10},
			func(q program.Quicterm) program.Program { return program.HungHome{Quicterm: q} }},
	} {
		if err := c.needs(); err != nil {
			t.Logf("%s: %v", c.attack.What, err)
			continue
		}
		records := s.measure(scenario.Scenario{
			Name: "attack", Program: c.wrap(program.Quicterm{}), Rivals: []program.Program{c.wrap(calm)},
			Work:   work.Attacked{Attack: c.attack, Work: work.Typing{Pace: pace, Spans: work.Keys(20, pace)}},
			Bounds: []scenario.Bound{{Metric: "truth", Quantile: 0.5, Rival: calm.Name(), Times: 10}},
		})
		if r := wantMetric(t, records, "truth"); r.Verdict != result.OK {
			t.Errorf("%+v", r)
		}
		for metric, most := range map[string]float64{"daemon growth": 100, "daemon threads": 50, "children": 10} {
			if r := wantMetric(t, records, metric); len(r.Values) != 1 || r.Values[0] > most {
				t.Errorf("%+v", r)
			}
		}
		if last := records[len(records)-1]; last.Program != calm.Name() ||
			slices.ContainsFunc(records, func(r result.Record) bool {
				return r.Program == calm.Name() && r.Metric == "children"
			}) {
			t.Errorf("%+v", last)
		}
	}
}

// Floods come at their rate, and newcomers log in meanwhile.
func TestAttemptOfFloods(t *testing.T) {
	if err := topology.CheckNamespaces(); err != nil {
		t.Skip(err)
	}
	t.Parallel()
	s := testSuite(t)
	const pace, rate = 20 * time.Millisecond, 20
	for _, flood := range []string{"resumes", "logins"} { // whose answers do not depend on the rate
		records := s.measure(quicterm(scenario.Scenario{
			Name: "flood of " + flood, Namespaces: true, Sessions: 2, Link: netem.Config{Delay: 5 * time.Millisecond},
			Work: work.Attacked{
				Attack: work.Attack{What: flood, Sources: 10, Rate: rate},
				Work:   work.Newcomers{Typing: work.Typing{Pace: pace, Spans: work.Keys(20, pace)}, Logins: 1},
			},
			// On a busy machine it is measured again: the attackers have the lowest priority.
			Bounds: []scenario.Bound{{Metric: "flood rate", Plus: rate / 4, AtLeast: true}},
		}))
		if r := wantMetric(t, records, "truth"); len(r.Values) != 20 {
			t.Errorf("%s: %+v", flood, r)
		}
		if r := wantMetric(t, records, "login"); len(r.Values) != 1 {
			t.Errorf("%s: %+v", flood, r)
		}
		if r := wantMetric(t, records, "flood rate"); r.Values[0] < rate/4 || r.Values[0] > 2*rate {
			t.Errorf("%s: %+v", flood, r)
		}
	}
}

// quicterm returns a scenario that quicterm does.
func quicterm(s scenario.Scenario) scenario.Scenario {
	s.Program = program.Quicterm{}
	return s
}

// broken has clients that end at once.
type broken struct{ program.Quicterm }

func (b broken) Serve(t *measure.T, on topology.Topology) program.Server {
	return brokenServer{b.Quicterm.Serve(t, on)}
}

type brokenServer struct{ program.Server }

func (brokenServer) Command(*topology.Machine, string) *exec.Cmd {
	return exec.Command("sh", "-c", "echo no such host; exit 1")
}

// A missed bound is measured again while the machine is busy. If it stays so, that is the
// verdict.
func TestRetryIfBusy(t *testing.T) {
	const calm, busy = measure.MaxStall - 1, measure.MaxStall
	for _, c := range []struct {
		name     string
		stalls   []time.Duration
		verdicts []string // of each time
		until    time.Time
		want     string
		times    int
	}{
		{"kept", []time.Duration{calm}, []string{result.OK}, time.Time{}, result.OK, 1},
		{"kept on a busy machine", []time.Duration{busy}, []string{result.OK}, time.Time{}, result.OK, 1},
		{"missed", []time.Duration{calm}, []string{result.Missed}, time.Time{}, result.Missed, 1},
		{"missed, then kept", []time.Duration{busy, busy}, []string{result.Missed, result.OK}, time.Time{}, result.OK, 2},
		{"missed, then calm", []time.Duration{busy, calm}, []string{result.Missed, result.Missed}, time.Time{}, result.Missed,
			2},
		{"busy", []time.Duration{busy, busy, busy}, []string{result.Missed, result.Missed, result.Missed}, time.Time{},
			result.Busy, 3},
		{"no time for another", []time.Duration{busy}, []string{result.Missed}, time.Now(), result.Busy, 1},
		{"failed", []time.Duration{busy}, []string{result.Failed}, time.Time{}, result.Failed, 1},
	} {
		times := 0
		s := &Suite{retryUntil: c.until}
		records := s.retryIfBusy(func(repeats int) ([]result.Record, time.Duration) {
			if repeats != times {
				t.Errorf("%s: repeat %d, want %d", c.name, repeats, times)
			}
			times++
			return []result.Record{{Verdict: result.Free}, {Verdict: c.verdicts[repeats]}}, c.stalls[repeats]
		})
		if times != c.times || records[1].Verdict != c.want || records[0].Verdict != result.Free {
			t.Errorf("%s: %d times, %+v", c.name, times, records)
		}
	}
	s := &Suite{ComparesPrograms: true}
	records := s.retryIfBusy(func(int) ([]result.Record, time.Duration) {
		return []result.Record{{Verdict: result.Free}, {Verdict: result.Never}}, busy
	})
	if records[0].Verdict != result.Busy || records[1].Verdict != result.Never {
		t.Errorf("for comparing: %+v", records)
	}
}
