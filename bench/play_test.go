//go:build linux

package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/result"
	"github.com/quicterm/quicterm/bench/rig"
)

// TestMain also is what sessions run, in place of the tests.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "echo" || os.Args[1] == "output") {
		main()
		return
	}
	os.Exit(m.Run())
}

// testPlayer plays with programs that are built for the test.
func testPlayer(t *testing.T) *player {
	t.Helper()
	if testing.Short() {
		t.Skip("builds the programs")
	}
	dir := t.TempDir()
	if err := rig.Build(dir); err != nil {
		t.Fatal(err)
	}
	return &player{all: new(measurements), bin: dir, seed: 1, slack: 10}
}

// wantMetric returns the record of a metric.
func wantMetric(t *testing.T, records []result.Record, metric string) result.Record {
	t.Helper()
	r, ok := find(records, quictermProgram{}.name(), metric)
	if !ok {
		t.Fatalf("no %s in %+v", metric, records)
	}
	return r
}

func TestPlay(t *testing.T) {
	t.Parallel()
	p := testPlayer(t)
	near := netem.Config{Delay: 10 * time.Millisecond}
	t.Run("typing", func(t *testing.T) {
		t.Parallel()
		const begins, takes = 200 * time.Millisecond, 60 * time.Millisecond
		slowly := event{begins, "another address", func(l link, _ netem.Config) {
			time.Sleep(takes)
			l.Readdress()
		}, true}
		records := p.play(newProxyStage, quictermProgram{}, scenario{
			name: "typing", link: near, sessions: 2, work: keystrokes{keys: 20, pace: 50 * time.Millisecond},
			events: []event{slowly},
		}, []bound{{metric: "truth", quantile: 0.5, rtts: 1, plus: 50}})
		for metric, n := range map[string]int{"feel": 40, "truth": 40, "back": 2} {
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
	t.Run("output", func(t *testing.T) {
		t.Parallel()
		records := p.play(newProxyStage, quictermProgram{}, scenario{
			name: "output", link: near, work: output{lasts: 2 * time.Second, rate: 100_000, late: rig.Patience},
			events: out(500*time.Millisecond, time.Second),
		}, nil)
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
		records := p.play(newProxyStage, quictermProgram{}, scenario{
			name: "yes", link: slow, work: ctrlC{command: yes, times: 1, used: 300 * time.Millisecond},
		}, nil)
		if r := wantMetric(t, records, "prompt"); len(r.Values) != 1 || r.Quantile(0) < 20 || r.Verdict != result.Free {
			t.Errorf("%+v", r)
		}
		records = p.play(newProxyStage, quictermProgram{}, scenario{
			name: "cat", link: near, work: cat{size: 1_000_000, times: 2, limit: rig.Patience},
		}, nil)
		if r := wantMetric(t, records, "complete"); r.Quantile(0) != 1 || r.Why != "" {
			t.Errorf("%+v", r)
		}
		if r := wantMetric(t, records, "rate"); len(r.Values) != 2 || r.Quantile(0) < 0.1 || r.Verdict != result.Free {
			t.Errorf("%+v", r)
		}
	})
	t.Run("a client that ends", func(t *testing.T) {
		t.Parallel()
		records := p.play(newProxyStage, brokenProgram{}, scenario{name: "broken", work: idle{}}, nil)
		if len(records) != 1 || records[0].Verdict != result.Failed || !strings.Contains(records[0].Why, "no such host") {
			t.Errorf("%+v", records)
		}
	})
}

// A brokenProgram has clients that end at once.
type brokenProgram struct{ quictermProgram }

func (b brokenProgram) serve(m *measurement, s stage) served {
	return brokenServed{b.quictermProgram.serve(m, s)}
}

type brokenServed struct{ served }

func (brokenServed) command(*seat, string) *exec.Cmd {
	return exec.Command("sh", "-c", "echo no such host; exit 1")
}

// What missed its bound is measured again while the machine is busy, and is busy if it
// stays so.
func TestBelievable(t *testing.T) {
	const calm, busy = believed - 1, believed
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
		{"missed, then calm", []time.Duration{busy, calm}, []string{result.Missed, result.Missed}, time.Time{}, result.Missed, 2},
		{"busy", []time.Duration{busy, busy, busy}, []string{result.Missed, result.Missed, result.Missed}, time.Time{}, result.Busy, 3},
		{"no time for another", []time.Duration{busy}, []string{result.Missed}, time.Now(), result.Busy, 1},
		{"failed", []time.Duration{busy}, []string{result.Failed}, time.Time{}, result.Failed, 1},
	} {
		times := 0
		p := &player{until: c.until}
		records := p.believable(func(repeats int) ([]result.Record, time.Duration) {
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
	p := &player{compare: true}
	records := p.believable(func(int) ([]result.Record, time.Duration) {
		return []result.Record{{Verdict: result.Free}, {Verdict: result.Never}}, busy
	})
	if records[0].Verdict != result.Busy || records[1].Verdict != result.Never {
		t.Errorf("for comparing: %+v", records)
	}
}
