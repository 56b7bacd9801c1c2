//go:build linux

package report

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/result"
)

// played returns the records of programs in scenarios like those that bench plays.
func played(programs ...string) []result.Record {
	var all []result.Record
	for i, program := range programs {
		calm := measuredEchoes(uint64(i), 101)
		calm.Bound, calm.Seed = "p50 <= 110 ms", 7
		calm.Time = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
		calm.Commit = "0123456789ab"
		calm.Machine = result.Machine{CPU: "a processor", Cores: 2, OS: "linux", Arch: "amd64", Go: "go1"}
		more := func(scenario, metric, unit string, values ...float64) result.Record {
			r := calm
			r.Scenario, r.Metric, r.Unit, r.Values, r.At, r.Bound, r.Verdict = scenario, metric, unit, values, nil, "", ""
			return r
		}
		calm.Program = program
		roam := calm
		roam.Scenario, roam.Bound, roam.Verdict = "another address", "", ""
		roam.Events = []result.Event{{At: 5, What: "another address"}}
		back := more(roam.Scenario, "back", "ms", 180, 190, 200)
		back.Events, back.Bound, back.Verdict = roam.Events, "p50 <= 150 ms", result.Missed
		if program == "ssh" {
			roam.Values, roam.At = nil, nil
			roam.Verdict, roam.Why = result.Never, "no key is answered"
			back.Values, back.Verdict, back.Why = nil, result.Never, "no key is answered"
		}
		idle := more("idle", "wire", "B/s", 4)
		idle.Bound, idle.Verdict = "max <= 30 B/s", result.OK
		all = append(all, calm, more(calm.Scenario, "feel", "ms", 1, 2, 3), more(calm.Scenario, "wire", "B/s", 1480),
			more(calm.Scenario, "client cpu", "s", 0.25), more(calm.Scenario, "server cpu", "s", 0.5),
			roam, back, idle)
	}
	return all
}

// unbounded returns the records without bounds, as they are if programs are compared.
func unbounded(records []result.Record) []result.Record {
	for i := range records {
		records[i].Bound = ""
		if v := records[i].Verdict; v == result.OK || v == result.Missed {
			records[i].Verdict = result.Free
		}
	}
	return records
}

// reported returns a report of records.
func reported(t *testing.T, records []result.Record) string {
	t.Helper()
	out, err := reportOf(kept(t, "peers.jsonl", "", records...), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func reportOf(file string, o Options) (string, error) {
	o.Programs = []string{"quicterm", "ssh"}
	var out bytes.Buffer
	err := Write(&out, &out, file, o)
	return out.String(), err
}

// cellsOf returns the cells of the row that begins with a text, which must be one.
func cellsOf(t *testing.T, table, name string) []string {
	t.Helper()
	rows := regexp.MustCompile(`(?m)^\| `+regexp.QuoteMeta(name)+` \|.*\|$`).FindAllString(table, -1)
	if len(rows) != 1 {
		t.Fatalf("%d rows of %s in\n%s", len(rows), name, table)
	}
	cells := strings.Split(strings.Trim(rows[0], "|"), " | ")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

func wantCells(t *testing.T, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("row %q, want %q", got, want)
	}
}

// What is published replaces the same scenarios of the same programs, and keeps the others.
func TestPublish(t *testing.T) {
	dir := t.TempDir()
	written := func(name string, records ...result.Record) string {
		var b bytes.Buffer
		for _, r := range records {
			if err := result.Append(&b, r); err != nil {
				t.Fatal(err)
			}
		}
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	old := played("quicterm")
	fresh := old[0]
	fresh.Time, fresh.Values, fresh.At = fresh.Time.Add(time.Hour), []float64{7}, nil
	published := filepath.Join(dir, "published.jsonl")
	for _, from := range []string{written("old.jsonl", old...), written("fresh.jsonl", fresh)} {
		if err := Publish(io.Discard, from, published); err != nil {
			t.Fatal(err)
		}
	}
	got, err := result.Read(published)
	if err != nil {
		t.Fatal(err)
	}
	others := slices.DeleteFunc(slices.Clone(old), func(r result.Record) bool { return r.Scenario == fresh.Scenario })
	if last := len(others); len(got) != last+1 || len(others) == 0 || got[0].Scenario != others[0].Scenario ||
		got[last].Values[0] != 7 {
		t.Errorf("%d records of %d others and 1: %+v", len(got), len(others), got)
	}
}

// What grows has a table with a row for each size.
func TestReportOfGrowth(t *testing.T) {
	var records []result.Record
	add := func(size float64, metric, unit string, values ...float64) {
		r := played("quicterm")[0]
		r.Growth, r.Size, r.Scenario = "sessions", size, figureText(size)+" sessions"
		r.Metric, r.Unit, r.Values, r.At, r.Bound = metric, unit, values, nil, ""
		records = append(records, r)
	}
	add(100, "truth", "ms", 2, 9)
	add(100, "own memory", "MiB", 4.4)
	add(1, "truth", "ms", 1, 3)
	add(1, "own memory", "MiB", 5)
	add(10, "back", "ms", 900)
	records[4].Bound, records[4].Verdict = "max 3000", result.OK
	out := reported(t, records)
	wantCells(t, cellsOf(t, out, "1"), "1", "1.00", "3.00", "", "", "5.00", "", "")
	wantCells(t, cellsOf(t, out, "10"), "10", "", "", "900", "900", "", "back max 3000", "ok")
	wantCells(t, cellsOf(t, out, "100"), "100", "2.00", "9.00", "", "", "4.40", "", "")
	if !strings.Contains(out, "| sessions | truth, p50, ms | truth, p99, ms |") {
		t.Errorf("no titles in\n%s", out)
	}
}

func TestReportOfOneProgram(t *testing.T) {
	out := reported(t, played("quicterm"))
	calm := cellsOf(t, out, "typing, 5 % loss")
	if len(calm) != 9 || calm[1] != "truth, ms" || !strings.HasPrefix(calm[2], "10") || calm[6] != "1480 B/s" ||
		calm[7] != "p50 <= 110 ms" || calm[8] != "ok" {
		t.Errorf("row %q", calm)
	}
	wantCells(t, cellsOf(t, out, "another address"), "another address", "back, ms", "190", "", "", "200", "",
		"p50 <= 150 ms", "**missed**")
	wantCells(t, cellsOf(t, out, "idle"), "idle", "wire, B/s", "4.00", "", "", "", "4.00 B/s", "max <= 30 B/s", "ok")
	for _, want := range []string{"2026-11-21", "0123456789ab", "a processor, 2 cores, linux, amd64, go1", "seed 7",
		"`go run ./bench run --only peers`", "- truth: from a key", "- wire: what is sent"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "feel") {
		t.Errorf("what is not in the table is explained:\n%s", out)
	}
}

func TestReportSideBySide(t *testing.T) {
	out := reported(t, unbounded(played("quicterm", "ssh")))
	tables := strings.Split(out, "\n\n")
	if len(tables) < 3 {
		t.Fatal(out)
	}
	times, costs := tables[1], tables[2]
	if header := strings.SplitN(times, "\n", 2)[0]; header != "| median / p99, or worst of few |  | quicterm | ssh |" {
		t.Errorf("header %q", header)
	}
	calm := cellsOf(t, times, "typing, 5 % loss")
	if len(calm) != 4 || calm[1] != "truth, ms" || !regexp.MustCompile(`^10\d / 1\d\d$`).MatchString(calm[2]) {
		t.Errorf("row %q", calm)
	}
	wantCells(t, cellsOf(t, times, ""), "", "feel, ms", "2.00 / 3.00", "2.00 / 3.00")
	wantCells(t, cellsOf(t, times, "another address"), "another address", "back, ms", "190 / 200", "never")
	wantCells(t, cellsOf(t, times, "idle"), "idle", "wire, B/s", "4.00", "4.00")
	wantCells(t, cellsOf(t, costs, "typing, 5 % loss"), "typing, 5 % loss", "1480 B/s, 0.750 s", "1480 B/s, 0.750 s")
	wantCells(t, cellsOf(t, costs, "another address"), "another address", "-", "-")
	for _, want := range []string{"- another address, ssh: never: no key is answered\n", "`make bench-peers`"} {
		if strings.Count(out, want) != 1 {
			t.Errorf("not one %q in\n%s", want, out)
		}
	}
}

func TestReportOfWhatFailed(t *testing.T) {
	records := unbounded(played("quicterm", "et"))
	failed := records[0]
	failed.Program, failed.Metric, failed.Values, failed.At = "et", "complete", nil, nil
	failed.Bound, failed.Verdict, failed.Why = "", result.Failed, "no prompt | at all"
	failed.Time = failed.Time.Add(time.Hour)
	out := reported(t, append(records, failed))
	if row := cellsOf(t, strings.Split(out, "\n\n")[1], "typing, 5 % loss"); row[3] != "failed" {
		t.Errorf("row %q, but et failed when it was measured last", row)
	}
	// It failed first, and not when it was measured again.
	failed.Time = failed.Time.Add(-2 * time.Hour)
	out = reported(t, append([]result.Record{failed}, records...))
	if row := cellsOf(t, strings.Split(out, "\n\n")[1], "typing, 5 % loss"); !strings.HasPrefix(row[3], "10") ||
		strings.Contains(out, "at all") {
		t.Errorf("row %q, but et did it when it was measured last:\n%s", row, out)
	}
	alone := failed
	alone.Program = "quicterm"
	out = reported(t, []result.Record{alone})
	wantCells(t, cellsOf(t, out, alone.Scenario), alone.Scenario, "complete, ms", "", "", "", "", "", "", "**failed**")
}

func TestReportSaysWhatABusyMachineMeasured(t *testing.T) {
	records := unbounded(played("quicterm", "ssh"))
	records[0].Verdict = result.Busy
	out := reported(t, records)
	if row := cellsOf(t, strings.Split(out, "\n\n")[1], records[0].Scenario); !strings.HasSuffix(row[2], " (busy)") ||
		strings.Contains(row[3], "busy") {
		t.Errorf("row %q", row)
	}
}

// Scenarios that are measured side by side end in any order.
func TestReportHasTheOrderOfTheScenarios(t *testing.T) {
	o := Options{Scenarios: []string{"one", "two", "three"}, Programs: []string{"quicterm", "ssh"}}
	var records []result.Record
	for _, s := range o.Scenarios {
		for _, program := range o.Programs {
			records = append(records, result.Record{Scenario: s, Program: program, Metric: "truth", Values: []float64{1}})
		}
	}
	slices.Reverse(records)
	r, err := newReport("a.jsonl", records, o)
	if err != nil || !slices.Equal(r.scenarios, o.Scenarios) || !slices.Equal(r.programs, o.Programs) {
		t.Errorf("scenarios %v, programs %v, %v", r.scenarios, r.programs, err)
	}
}

func TestReportOfRates(t *testing.T) {
	r := result.Record{Scenario: "bulk", Program: "quicterm", Metric: "rate", Unit: "MB/s", Bound: "p50 >= 5 MB/s",
		Verdict: result.OK}
	for i := range 100 {
		r.Values = append(r.Values, float64(101+i))
	}
	out := reported(t, []result.Record{r})
	wantCells(t, cellsOf(t, out, "bulk"), "bulk", "rate, MB/s", "150", "110", "101", "101", "", r.Bound, "ok")
}

// A program that is to keep bounds has those of its rivals below its own figures.
func TestReportOfRivals(t *testing.T) {
	rate := result.Record{Scenario: "cat", Program: "quicterm", Metric: "rate", Unit: "MB/s", Values: []float64{40, 50},
		Bound: "p50 >= 1 x ssh", Verdict: result.Missed}
	rival := rate
	rival.Program, rival.Values, rival.Bound, rival.Verdict = "ssh", []float64{60, 70}, "", ""
	out := reported(t, []result.Record{rival, rate})
	wantCells(t, cellsOf(t, out, "cat"), "cat", "rate, MB/s", "40.0", "", "", "40.0", "", rate.Bound, "**missed**")
	wantCells(t, cellsOf(t, out, ""), "", "rate, MB/s, of ssh", "60.0", "", "", "60.0", "", "", "")
	striped := rate
	striped.Scenario, striped.Program = "copy", "quicterm, auto for bulk"
	out = reported(t, []result.Record{rival, rate, striped})
	wantCells(t, cellsOf(t, out, "copy"), "copy", "rate, MB/s, of quicterm, auto for bulk", "40.0", "", "", "40.0", "",
		rate.Bound, "**missed**")
}

func TestSummary(t *testing.T) {
	records := unbounded(played("quicterm", "ssh"))
	file := kept(t, "peers.jsonl", "", records...)
	out, err := reportOf(file, Options{Summary: true})
	if err != nil {
		t.Fatal(err)
	}
	wantCells(t, cellsOf(t, out, "the next echo after the address changes"), "the next echo after the address changes",
		"190 ms", "never")
	wantCells(t, cellsOf(t, out, "an idle session on the wire"), "an idle session on the wire", "4 B/s", "4 B/s")
	if rows := strings.Count(out, "\n| "); rows != len(summaryRows) {
		t.Errorf("%d rows in\n%s", rows, out)
	}
}

func TestReportGoesIntoAFile(t *testing.T) {
	records := unbounded(played("quicterm", "ssh"))
	file := kept(t, "peers.jsonl", "", records...)
	readme := filepath.Join(filepath.Dir(file), "docs", "README.md")
	if err := os.Mkdir(filepath.Dir(readme), 0o755); err != nil {
		t.Fatal(err)
	}
	const before, after = "# a page\n\n<!-- results of peers -->\n", "<!-- end of peers -->\nmore\n"
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(readme, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	read := func() string {
		t.Helper()
		b, err := os.ReadFile(readme)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	write(before + "an old table\n" + after)
	if out, err := reportOf(file, Options{Page: readme}); err != nil || out != "" {
		t.Fatal(out, err)
	}
	first := read()
	if !strings.HasPrefix(first, before) || !strings.HasSuffix(first, after) || strings.Contains(first, "old table") {
		t.Errorf("the page is\n%s", first)
	}
	cellsOf(t, strings.Split(first, "\n\n")[2], "another address")
	if !strings.Contains(first, "[peers.jsonl](../peers.jsonl)") {
		t.Errorf("the results are not linked from the page's folder:\n%s", first)
	}
	if _, err := reportOf(file, Options{Page: readme}); err != nil || read() != first {
		t.Errorf("the second time: %v\n%s", err, read())
	}
	for what, text := range map[string]string{
		"no comments": "# a page\n",
		"no end":      before,
		"wrong order": after + before,
		"twice":       before + after + before + after,
	} {
		write(text)
		if _, err := reportOf(file, Options{Page: readme}); err == nil ||
			!strings.Contains(err.Error(), "<!-- end of peers -->") || read() != text {
			t.Errorf("%s: error %v, and the page is\n%s", what, err, read())
		}
	}
	if _, err := reportOf(file, Options{Page: filepath.Join(t.TempDir(), "none")}); err == nil {
		t.Error("there is no such page")
	}
}
