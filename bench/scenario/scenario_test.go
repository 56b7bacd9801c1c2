//go:build linux

package scenario

import (
	"slices"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/program"
	"github.com/quicterm/quicterm/bench/result"
	"github.com/quicterm/quicterm/bench/work"
)

// Every scenario can be measured: names are unique, events are in order, and bounds are of
// metrics.
func TestScenarios(t *testing.T) {
	names := map[string]bool{"all": true}
	for _, s := range suites {
		names[s.Name] = true
	}
	for _, s := range all() {
		if names[s.Name] {
			t.Errorf("two scenarios are called %q", s.Name)
		}
		names[s.Name] = true
		if s.Work == nil {
			t.Errorf("%s: no work", s.Name)
		}
		for _, b := range s.Bounds {
			if result.About(b.Metric).Meaning == "" {
				t.Errorf("%s: %q is no metric", s.Name, b.Metric)
			}
			if b.Rival != "" && !slices.ContainsFunc(s.Rivals, func(p program.Program) bool { return p.Name() == b.Rival }) {
				t.Errorf("%s: %s is not among the rivals", s.Name, b.Rival)
			}
		}
		for i := 1; i < len(s.Events); i++ {
			if s.Events[i].At < s.Events[i-1].At {
				t.Errorf("%s: events are not in order", s.Name)
			}
		}
		for _, e := range s.Events {
			if e.Client != nil && !s.Namespaces && s.RTT() == 0 {
				t.Errorf("%s: there is no link to which %q can happen", s.Name, e.What)
			}
			if (e.Client == nil) == (e.Server == nil) {
				t.Errorf("%s: %q must happen to clients, or to the server", s.Name, e.What)
			}
		}
	}
}

func TestSelect(t *testing.T) {
	count := func(only ...string) int { return len(Select(only, false)) }
	if n := count(); n != len(standard) {
		t.Errorf("%d scenarios without a text, want the standard %d", n, len(standard))
	}
	if n := count("roam"); n != len(roaming) {
		t.Errorf("%d roam, want %d", n, len(roaming))
	}
	if n := count("all"); n != len(all()) {
		t.Errorf("%d of all %d", n, len(all()))
	}
	if n := count("typing, 29 %"); n != 2 {
		t.Errorf("%d scenarios with a text, want 2", n)
	}
	if n := count("idle, pings each 25 s", "feel"); n != 1+len(feel) {
		t.Errorf("%d scenarios with a text and a suite, want %d", n, 1+len(feel))
	}
	if n := count("no such thing"); n != 0 {
		t.Errorf("%d scenarios with a text that none has", n)
	}
	quick := Select(nil, true)
	if len(quick) < 15 {
		t.Errorf("%d quick scenarios", len(quick))
	}
	for _, s := range quick {
		last := time.Duration(0)
		for _, e := range s.Events {
			last = max(last, e.At)
		}
		if s.Clients() > 10 || s.Stagger > 0 && s.Clients() > quickClients || last > 12*time.Second {
			t.Errorf("%s is not quick: %d clients, events until %v", s.Name, s.Clients(), last)
		}
	}
	if w := quick[0].Work.(work.Typing); w.Spans[0].Until >= hundredKeys.Spans[0].Until {
		t.Error("quick typing is as long as the other")
	}
}

func TestVerdict(t *testing.T) {
	values := make([]float64, 100)
	for i := range values {
		values[i] = 101 + float64(i)
	}
	const rtt = 100 * time.Millisecond
	r := result.Record{Metric: "truth", Values: values} // up to 200
	rate := result.Record{Metric: "rate", Values: []float64{0.8, 0.95}}
	complete := result.Record{Metric: "complete", Values: []float64{1, 0.99}}
	rivals := []result.Record{{Program: "ssh", Metric: "rate", Values: []float64{0.4}}}
	for _, c := range []struct {
		record result.Record
		slack  float64
		bounds []Bound
		text   string
		want   string
	}{
		{r, 1, nil, "", result.Free},
		{r, 1, []Bound{{Metric: "feel", Quantile: 0.5, Plus: 1}}, "", result.Free},
		{r, 1, []Bound{{Metric: "truth", Quantile: 0.5, RTTs: 1, Plus: 50}}, "p50 150", result.OK},
		{r, 1, []Bound{{Metric: "truth", Quantile: 0.5, RTTs: 1, Plus: 49}}, "p50 149", result.Missed},
		{r, 1, []Bound{{Metric: "truth", Quantile: 0.99, RTTs: 1.99}, {Metric: "truth", Quantile: 1, RTTs: 1.99}},
			"p99 199, max 199", result.Missed},
		{r, 2, []Bound{{Metric: "truth", Quantile: 1, RTTs: 1}}, "max 200", result.OK},
		{rate, 1, []Bound{{Metric: "rate", Quantile: 0.5, Plus: 0.8, AtLeast: true}}, "p50 >= 0.8", result.OK},
		{rate, 1, []Bound{{Metric: "rate", Plus: 0.9, AtLeast: true}}, "min >= 0.9", result.Missed},
		{rate, 2, []Bound{{Metric: "rate", Plus: 0.9, AtLeast: true}}, "min >= 0.45", result.OK},
		{rate, 1, []Bound{{Metric: "rate", Quantile: 0.5, Rival: "ssh", Times: 2, AtLeast: true}}, "p50 >= 2 x ssh",
			result.OK},
		{rate, 1, []Bound{{Metric: "rate", Quantile: 0.5, Rival: "ssh", Times: 2, Plus: 0.1, AtLeast: true}},
			"p50 >= 2 x ssh + 0.1", result.Missed},
		{rate, 1, []Bound{{Metric: "rate", Quantile: 0.5, Rival: "mosh", Times: 2, AtLeast: true}}, "p50 >= 2 x mosh",
			result.Free},
		{complete, 2, []Bound{{Metric: "complete", Plus: 1, AtLeast: true}}, "min >= 1", result.Missed},
		{result.Record{Metric: "truth"}, 1, []Bound{{Metric: "truth", Quantile: 0.5, RTTs: 1}}, "p50 100", result.Missed},
	} {
		text, got := Verdict(c.record, c.bounds, rtt, c.slack, rivals)
		if text != c.text || got != c.want {
			t.Errorf("%v, slack %v: %q %q, want %q %q", c.bounds, c.slack, text, got, c.text, c.want)
		}
	}
}
