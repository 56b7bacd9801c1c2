//go:build linux

package report

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quicterm/quicterm/bench/result"
)

// measuredEchoes returns a record of 200 echoes around a median, as a link with some loss
// makes them.
func measuredEchoes(seed uint64, median float64) result.Record {
	rng := rand.New(rand.NewPCG(seed, 0))
	r := result.Record{Scenario: "typing, 5 % loss", Program: "quicterm", Metric: "truth", Unit: "ms", Loss: 0.05,
		RTT: 100, Verdict: result.OK, Portable: true}
	for i := range 200 {
		v := median + 3*rng.ExpFloat64()
		if rng.Float64() < 0.1 { // sent again
			v += 50 + 40*rng.Float64()
		}
		r.Values = append(r.Values, v)
		r.At = append(r.At, 0.2*float64(i))
	}
	return r
}

func one(program, metric string, v float64) result.Record {
	return result.Record{Scenario: "bulk", Program: program, Metric: metric, Values: []float64{v}}
}

// compared returns what compare prints, and whether something got worse.
func compared(t *testing.T, old, new []result.Record, portable bool) (string, bool) {
	t.Helper()
	var out bytes.Buffer
	err := Compare(&out, old, new, portable)
	if errors.As(err, &BadInput{}) {
		t.Fatal(err)
	}
	return out.String(), err != nil
}

func TestCompareFindsASleepInTheEcho(t *testing.T) {
	for seed := range uint64(20) {
		out, bad := compared(t, []result.Record{measuredEchoes(seed, 101)}, []result.Record{measuredEchoes(seed+100, 151)},
			true)
		if !bad || !strings.Contains(out, worse) || !strings.Contains(out, "1.4") {
			t.Errorf("a sleep of 50 ms is not found:\n%s", out)
		}
		out, bad = compared(t, []result.Record{measuredEchoes(seed, 151)}, []result.Record{measuredEchoes(seed+100, 101)},
			true)
		if bad || !strings.Contains(out, "better") {
			t.Errorf("that a sleep of 50 ms is gone is not found:\n%s", out)
		}
	}
}

func TestCompareIsQuietAboutNoise(t *testing.T) {
	for seed := range uint64(200) {
		old, new := measuredEchoes(seed, 101), measuredEchoes(seed+1000, 101)
		if out, bad := compared(t, []result.Record{old}, []result.Record{new}, false); bad ||
			!strings.HasSuffix(out, "same\n") {
			t.Errorf("two runs of the same differ:\n%s", out)
		}
	}
}

// Where runs of one file are apart by more than their values are spread, another run as
// far away is noise.
func TestCompareLearnsFromRuns(t *testing.T) {
	runs := func(seed uint64, medians ...float64) (all []result.Record) {
		for i, m := range medians {
			all = append(all, measuredEchoes(seed+uint64(i), m))
		}
		return all
	}
	for _, c := range []struct {
		name     string
		old, new []float64 // medians
		want     string
	}{
		{"within the spread of the old runs", []float64{100, 105, 130}, []float64{126, 126, 127}, "same"},
		{"beyond the spread of the old runs", []float64{100, 101, 102}, []float64{126, 126, 127}, worse},
		{"beyond three runs as the next may be", []float64{100, 102, 104}, []float64{108, 108.2, 108.1}, "same"},
		{"a small difference of close runs", []float64{100, 100, 100}, []float64{103, 103, 103}, "worse by less than 10 %"},
		{"a small difference of single runs", []float64{100}, []float64{103}, "same"},
	} {
		out, bad := compared(t, runs(1, c.old...), runs(11, c.new...), false)
		if bad != (c.want == worse) || !strings.HasSuffix(out, c.want+"\n") {
			t.Errorf("%s, want %s:\n%s", c.name, c.want, out)
		}
	}
}

// Slower repair of what is lost does not show in the median, if little is lost.
func TestCompareFindsATail(t *testing.T) {
	run := func(seed uint64, repair float64) (r result.Record) {
		r = measuredEchoes(seed, 101)
		for i := range uint64(4) {
			r.Values = append(r.Values, measuredEchoes(1000*(i+1)+seed, 101).Values...)
		}
		for i, v := range r.Values {
			if v > 150 {
				r.Values[i] += repair
			}
		}
		r.At = nil
		return r
	}
	for seed := range uint64(50) {
		out, bad := compared(t, []result.Record{run(seed, 0)}, []result.Record{run(seed+100, 100)}, true)
		if !bad || !strings.Contains(out, "truth, p99") || strings.Count(out, worse) != 1 {
			t.Errorf("repair that takes 100 ms longer is not found:\n%s", out)
		}
		out, bad = compared(t, []result.Record{run(seed, 0)}, []result.Record{run(seed+100, 0)}, true)
		if bad || strings.Contains(out, "p99") {
			t.Errorf("tails of the same differ:\n%s", out)
		}
	}
	// A busy moment of the machine makes many of the worst, but of one run.
	stalled := run(2, 0)
	for i := range 30 {
		stalled.Values[i] = 240
	}
	if out, bad := compared(t, []result.Record{run(1, 0)}, []result.Record{stalled}, true); bad {
		t.Errorf("a few stalls of the machine make it worse:\n%s", out)
	}
}

func TestCompareSingleFigures(t *testing.T) {
	for _, c := range []struct {
		metric   string
		old, new float64
		want     string
	}{
		{"wire", 1000, 1300, "same"},
		{"wire", 1000, 2000, "WORSE"},
		{"wire", 2000, 1000, "better"},
		{"rate", 30, 10, "WORSE"},
		{"rate", 10, 30, "better"},
		{"complete", 1, 0, "WORSE"},
		{"wire", 0, 0, "same"},
		{"wire", 0, 10, "WORSE"},
	} {
		out, bad := compared(t, []result.Record{one("quicterm", c.metric, c.old)},
			[]result.Record{one("quicterm", c.metric, c.new)}, false)
		if !strings.HasSuffix(out, c.want+"\n") || bad != (c.want == worse) {
			t.Errorf("%s from %v to %v, want %s:\n%s", c.metric, c.old, c.new, c.want, out)
		}
	}
}

func TestCompareWhatFails(t *testing.T) {
	did := measuredEchoes(1, 100)
	failed := result.Record{Scenario: did.Scenario, Program: "quicterm", Metric: "complete", Verdict: result.Failed,
		Why: "no prompt"}
	never := did
	never.Verdict, never.Why = result.Never, "3 keys are never answered"
	for _, lost := range []result.Record{failed, never} {
		for _, portable := range []bool{false, true} {
			out, bad := compared(t, []result.Record{did}, []result.Record{lost}, portable)
			if !bad || !strings.Contains(out, lost.Verdict+": "+lost.Why) {
				t.Errorf("what was done and is %s:\n%s", lost.Verdict, out)
			}
		}
		if out, bad := compared(t, []result.Record{lost}, []result.Record{did}, false); bad ||
			!strings.Contains(out, "better") {
			t.Errorf("what was %s and is done:\n%s", lost.Verdict, out)
		}
		if out, bad := compared(t, []result.Record{lost}, []result.Record{lost}, false); bad ||
			!strings.Contains(out, "same") {
			t.Errorf("what was and is %s:\n%s", lost.Verdict, out)
		}
	}
	// One failure among runs is a failure.
	if out, bad := compared(t, []result.Record{did, did}, []result.Record{failed, did}, false); !bad {
		t.Errorf("one of two runs failed:\n%s", out)
	}
}

func TestCompareLeavesOut(t *testing.T) {
	echoes, slow := measuredEchoes(1, 100), measuredEchoes(2, 300)
	slow.Verdict = result.Busy
	cpu, more := one("quicterm", "server cpu", 1), one("quicterm", "server cpu", 9)
	if out, bad := compared(t, []result.Record{echoes, cpu}, []result.Record{slow, cpu}, false); bad ||
		strings.Contains(out, "truth") {
		t.Errorf("a busy machine's figures count:\n%s", out)
	}
	if out, bad := compared(t, []result.Record{echoes, cpu}, []result.Record{echoes, more}, true); bad ||
		strings.Contains(out, "cpu") {
		t.Errorf("what depends on the machine is among what does not:\n%s", out)
	}
	if out, bad := compared(t, []result.Record{echoes, cpu}, []result.Record{echoes, more}, false); !bad {
		t.Errorf("nine times the computing is not found:\n%s", out)
	}
	out, bad := compared(t, []result.Record{echoes, cpu},
		[]result.Record{echoes, one("ssh", "rate", 3), one("ssh", "wire", 3)}, false)
	if bad || !strings.Contains(out, "Only in the old file: 1, only in the new one: 2.") {
		t.Errorf("what is in one file only:\n%s", out)
	}
	elsewhere := echoes
	elsewhere.Machine.CPU = "another"
	if out, _ := compared(t, []result.Record{echoes}, []result.Record{elsewhere}, false); !strings.Contains(out,
		"The machines differ") {
		t.Errorf("machines that differ:\n%s", out)
	}
	if out, _ := compared(t, []result.Record{echoes}, []result.Record{elsewhere}, true); strings.Contains(out,
		"The machines differ") {
		t.Errorf("machines that differ do not matter:\n%s", out)
	}
}

// kept writes records to a file.
func kept(t *testing.T, name, more string, records ...result.Record) string {
	t.Helper()
	var b bytes.Buffer
	for _, r := range records {
		if err := result.Append(&b, r); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, append(b.Bytes(), more...), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCompareFiles(t *testing.T) {
	good, bad := measuredEchoes(1, 100), measuredEchoes(2, 200)
	old := kept(t, "old.jsonl", "", good)
	other := good
	other.Scenario = "another"
	for _, c := range []struct {
		what, new string
		badInput  bool
		fails     bool
		text      string
	}{
		{"same", old, false, false, "same"},
		{"a run that was broken off", kept(t, "new.jsonl", `{"scen`, good), false, false,
			"new.jsonl:2: the file ends within a line"},
		{"worse", kept(t, "new.jsonl", "", bad), false, true, "1 of 1 got worse"},
		{"no file", "none.jsonl", true, true, "none.jsonl: no such file"},
		{"bad line", kept(t, "new.jsonl", "what\n", good), true, true, "new.jsonl:2: not a record"},
		{"empty", kept(t, "new.jsonl", ""), true, true, "new.jsonl: no results"},
		{"nothing in common", kept(t, "new.jsonl", "", other), true, true, "nothing in common"},
	} {
		var out bytes.Buffer
		err := CompareFiles(&out, &out, old, c.new, false)
		text := out.String() + fmt.Sprint(err)
		if (err != nil) != c.fails || errors.As(err, &BadInput{}) != c.badInput || !strings.Contains(text, c.text) {
			t.Errorf("%s: %v, want %q:\n%s", c.what, err, c.text, &out)
		}
	}
}

// What earlier commits were like does not hide that the last one got worse.
func TestCompareLastCommit(t *testing.T) {
	before, after := measuredEchoes(1, 101), measuredEchoes(2, 151)
	before.Commit, after.Commit = "0", "1"
	if out, bad := compared(t, []result.Record{before}, []result.Record{before, before, before, after}, false); !bad {
		t.Errorf("a commit that is worse is not found behind others:\n%s", out)
	}
}
