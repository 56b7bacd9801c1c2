//go:build linux

package main

import (
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/quicterm/quicterm/bench/result"
)

// markdown returns the report of a file of results, for a page in a folder.
func (r *report) markdown(file, folder string, plots []drawing) (string, error) {
	var b strings.Builder
	to, err := relative(folder, file)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&b, "%s Every value is in [%s](%s).\n\n", r.origin(), filepath.Base(file), &url.URL{Path: to})
	if len(r.programs) == 1 {
		r.alone(&b)
	} else {
		r.sideBySide(&b)
		b.WriteByte('\n')
		r.costs(&b)
	}
	b.WriteByte('\n')
	for _, note := range slices.Concat(r.reasons(), r.meanings(), r.checks()) {
		fmt.Fprintf(&b, "- %s\n", note)
	}
	if len(r.micro) > 0 {
		b.WriteByte('\n')
		r.microTable(&b)
	}
	for i, d := range plots {
		if i == 0 {
			b.WriteByte('\n')
		}
		to, err := relative(folder, d.base+".svg")
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "<img alt=\"%s\" src=\"%s\" width=\"49%%\">\n", d.title, &url.URL{Path: to})
	}
	return b.String(), nil
}

// relative returns a path from a folder.
func relative(folder, path string) (string, error) {
	from, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.Rel(from, to)
}

// origin says when, where and how something was measured.
func (r *report) origin() string {
	var commits, machines, seeds []string
	var latest time.Time
	for _, one := range r.records {
		if one.Commit != "" {
			commits = append(commits, "commit "+one.Commit)
		}
		machines = append(machines, machineText(one.Machine))
		seeds = append(seeds, fmt.Sprint(one.Seed))
		if one.Time.After(latest) {
			latest = one.Time
		}
	}
	how := "`make bench`"
	if len(r.programs) > 1 {
		how = "`make bench-peers` as root"
	}
	parts := []string{"Measured on " + latest.Format(time.DateOnly), distinct(commits), "on " + distinct(machines), "seed " + distinct(seeds)}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return strings.Join(parts, ", ") + ". To reproduce it: " + how + "."
}

// distinct lists what differs.
func distinct(texts []string) string {
	slices.Sort(texts)
	return strings.Join(slices.Compact(texts), " and ")
}

// row writes a row of a table.
func tableRow(w io.Writer, cells ...string) {
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(c, "|", "\\|")
	}
	fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
}

// alone writes the table of a program alone, with the bounds that it is to keep.
func (r *report) alone(w io.Writer) {
	program := r.programs[0]
	fmt.Fprintf(w, "| %s | | p50 | p90 | p99 | worst | on the wire | bound | |\n|---|---|---|---|---|---|---|---|---|\n", program)
	for _, scenario := range r.scenarios {
		name := scenario
		wire := ""
		if one, ok := find(r.of(scenario), program, "wire"); ok {
			wire = quantileText(one, 0.5) + " " + one.Unit
		}
		for _, one := range chief(r.of(scenario)) {
			tableRow(w, name, what(one), quantileText(one, 0.5), quantileText(one, 0.9), quantileText(one, tail), quantileText(one, 1),
				wire, one.Bound, verdictText(one))
			name, wire = "", ""
		}
	}
}

// chief returns the records of one program that a table shows of a scenario: those with
// bounds, what it gives before what it costs; or else the first.
func chief(records []result.Record) []result.Record {
	var gives, costs []result.Record
	for _, r := range records {
		switch {
		case r.Bound == "":
		case result.About(r.Metric).Cost:
			costs = append(costs, r)
		default:
			gives = append(gives, r)
		}
	}
	if len(gives)+len(costs) == 0 {
		return records[:1]
	}
	return append(gives, costs...)
}

// what names a metric with its unit.
func what(r result.Record) string {
	if r.Unit == "" {
		return r.Metric
	}
	return r.Metric + ", " + r.Unit
}

// quantileText returns what a share of the values are as good as, or better, if there are
// values enough to say so.
func quantileText(r result.Record, q float64) string {
	least := map[float64]int{0.5: 1, 0.9: 10, tail: many, 1: 2}
	if len(r.Values) < least[q] {
		return ""
	}
	if result.About(r.Metric).MoreIsBetter {
		q = 1 - q
	}
	return figureText(r.Quantile(q))
}

// many is how many values have a tail.
const many = 100

func verdictText(r result.Record) string {
	switch r.Verdict {
	case result.Busy:
		return "the machine was busy"
	case result.Missed, result.Failed:
		return "**" + r.Verdict + "**"
	default:
		return r.Verdict
	}
}

// sideBySide writes the table of several programs: the median, and the 99th percentile or
// the worst of few.
func (r *report) sideBySide(w io.Writer) {
	tableRow(w, append([]string{"median / p99, or worst of few", ""}, r.programs...)...)
	fmt.Fprintf(w, "|%s\n", strings.Repeat("---|", 2+len(r.programs)))
	for _, scenario := range r.scenarios {
		records := r.of(scenario)
		name := scenario
		for _, example := range given(records) {
			cells := []string{name, what(example)}
			for _, program := range r.programs {
				cells = append(cells, programCell(records, program, example.Metric))
			}
			tableRow(w, cells...)
			name = ""
		}
	}
}

// given returns a record of each metric by which programs are compared in a scenario: of
// what they give, or else what is on the wire. Where something happens on the link, it is
// not all echoes, but how soon they are back.
func given(records []result.Record) (all []result.Record) {
	isBack := slices.ContainsFunc(records, func(r result.Record) bool { return r.Metric == "back" })
	for _, r := range records {
		known := slices.ContainsFunc(all, func(other result.Record) bool { return other.Metric == r.Metric })
		echo := r.Metric == "feel" || r.Metric == "truth"
		if !known && !result.About(r.Metric).Cost && r.Verdict != result.Failed && !(isBack && echo) {
			all = append(all, r)
		}
	}
	if len(all) > 0 {
		return all
	}
	wire := slices.IndexFunc(records, func(r result.Record) bool { return r.Metric == "wire" })
	return records[max(wire, 0):][:1]
}

// programCell says how well a program does.
func programCell(records []result.Record, program, metric string) string {
	r, ok := find(records, program, metric)
	why, is := lost(records, program)
	switch {
	case ok && r.Verdict == result.Never, is && !ok:
		return why.Verdict
	case !ok || len(r.Values) == 0:
		return "-"
	}
	text := quantileText(r, 0.5)
	switch n := len(r.Values); {
	case n >= many:
		text += " / " + quantileText(r, tail)
	case n > 1:
		text += " / " + quantileText(r, 1)
	}
	if r.Verdict == result.Busy {
		text += " (busy)"
	}
	return text
}

// costs writes the table of what a session costs with each program.
func (r *report) costs(w io.Writer) {
	tableRow(w, append([]string{"wire, cpu, memory of a session, both ends"}, r.programs...)...)
	fmt.Fprintf(w, "|%s\n", strings.Repeat("---|", 1+len(r.programs)))
	for _, scenario := range r.scenarios {
		records := r.of(scenario)
		cells := []string{scenario}
		for _, program := range r.programs {
			cells = append(cells, costCell(records, program))
		}
		tableRow(w, cells...)
	}
}

func costCell(records []result.Record, program string) string {
	var parts []string
	for _, metrics := range [][]string{{"wire"}, {"client cpu", "server cpu"}, {"client memory", "server memory"}} {
		sum, unit, known := 0.0, "", true
		for _, metric := range metrics {
			r, ok := find(records, program, metric)
			known = known && ok && len(r.Values) > 0
			if known {
				sum, unit = sum+r.Quantile(0.5), r.Unit
			}
		}
		if known {
			parts = append(parts, strings.TrimSpace(figureText(sum)+" "+unit))
		}
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}

// microTable writes the table of Go benchmarks.
func (r *report) microTable(w io.Writer) {
	fmt.Fprint(w, "| Go benchmark | | median | worst | bound | |\n|---|---|---|---|---|---|\n")
	for _, one := range r.micro {
		tableRow(w, one.Scenario, what(one), quantileText(one, 0.5), quantileText(one, 1), one.Bound, verdictText(one))
	}
}

// checks say what the emulator did, of what it was asked to do.
func (r *report) checks() []string {
	if len(r.emulator) == 0 {
		return nil
	}
	var all []string
	for _, one := range r.emulator {
		text := one.Metric + " " + verdictText(one)
		if len(one.Values) > 0 {
			text = fmt.Sprintf("%s %s %s (%s, %s)", one.Metric, quantileText(one, 0.5), one.Unit, one.Bound, verdictText(one))
		}
		all = append(all, text)
	}
	return []string{"the emulated network, checked first: " + strings.Join(all, ", ")}
}

// reasons say why programs did not do scenarios, and what is not to be believed.
func (r *report) reasons() (all []string) {
	for _, one := range r.records {
		note := ""
		switch one.Verdict {
		case result.Never, result.Failed:
			note = fmt.Sprintf("%s, %s: %s: %s", one.Scenario, one.Program, one.Verdict, one.Why)
		case result.Busy:
			note = fmt.Sprintf("%s, %s: the machine was busy, for %s ms at a time", one.Scenario, one.Program, figureText(one.StallMS))
		}
		if note != "" && !slices.Contains(all, note) {
			all = append(all, note)
		}
	}
	return all
}

// meanings say what the metrics are.
func (r *report) meanings() (all []string) {
	shown := r.records
	if len(r.programs) == 1 {
		shown = nil
		for _, scenario := range r.scenarios {
			shown = append(shown, chief(r.of(scenario))...)
		}
	}
	for _, one := range shown {
		if m := result.About(one.Metric).Meaning; m != "" && len(one.Values) > 0 {
			if note := one.Metric + ": " + m; !slices.Contains(all, note) {
				all = append(all, note)
			}
		}
	}
	return all
}
