//go:build linux

package report

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

// markdown returns the report as Markdown.
func (r *report) markdown() string {
	var b strings.Builder
	r.origin(&b)
	growths := r.growths()
	for i, growth := range growths {
		if i > 0 {
			b.WriteByte('\n')
		}
		r.growthTable(&b, growth)
	}
	switch {
	case len(growths) > 0:
	case r.bounded():
		r.boundsTable(&b)
	default:
		r.sideBySide(&b)
		b.WriteByte('\n')
		r.costs(&b)
	}
	b.WriteByte('\n')
	for _, note := range slices.Concat(r.reasons(), r.meanings()) {
		fmt.Fprintf(&b, "- %s\n", note)
	}
	return b.String()
}

// link returns the link from the page to a file beside the results.
func (r *report) link(file string) *url.URL { return &url.URL{Path: filepath.Join(r.folder, file)} }

// origin writes when, where and how the records were measured, and where they are.
func (r *report) origin(w io.Writer) {
	var commits, machines, seeds []string
	var latest time.Time
	for _, one := range r.records {
		if one.Commit != "" {
			commits = append(commits, "commit "+one.Commit)
		}
		machines = append(machines, one.Machine.String())
		seeds = append(seeds, fmt.Sprint(one.Seed))
		if one.Time.After(latest) {
			latest = one.Time
		}
	}
	how := "go run ./bench run --only " + r.name
	switch {
	case !r.bounded():
		how = "make bench-peers"
	case r.name == "latest":
		how = "make bench"
	}
	parts := []string{"Measured on " + latest.Format(time.DateOnly), distinct(commits), "on " + distinct(machines),
		"seed " + distinct(seeds)}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	fmt.Fprintf(w, "%s. To reproduce it: `%s`. Every value is in [%s](%s).\n\n", strings.Join(parts, ", "), how, r.file,
		r.link(r.file))
}

// distinct lists what differs.
func distinct(texts []string) string {
	slices.Sort(texts)
	return strings.Join(slices.Compact(texts), " and ")
}

// programsTable begins a table with a column for each program.
func (r *report) programsTable(w io.Writer, titles ...string) {
	titles = append(titles, r.programs...)
	tableRow(w, titles...)
	fmt.Fprintf(w, "|%s\n", strings.Repeat("---|", len(titles)))
}

// programsRow writes a row of such a table.
func (r *report) programsRow(w io.Writer, cell func(program string) string, titles ...string) {
	for _, program := range r.programs {
		titles = append(titles, cell(program))
	}
	tableRow(w, titles...)
}

// tableRow writes a row of a table.
func tableRow(w io.Writer, cells ...string) {
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(c, "|", "\\|")
	}
	fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
}

// boundsTable writes the table of the programs that have bounds to keep. Of the others it has the same
// metrics. Programs that are not the first scenario's are named.
func (r *report) boundsTable(w io.Writer) {
	program := measured(r.of(r.scenarios[0]))
	fmt.Fprintf(w, "| %s | | p50 | p90 | p99 | worst | on the wire | bound | |\n|---|---|---|---|---|---|---|---|---|\n",
		program)
	for _, scenario := range r.scenarios {
		records := r.of(scenario)
		own := measured(records)
		name, wire := scenario, ""
		if one, ok := find(records, own, "wire"); ok {
			wire = quantileText(one, 0.5) + " " + one.Unit
		}
		row := func(name string, one result.Record, wire string) {
			what := what(one)
			if one.Program != program {
				what += ", of " + one.Program
			}
			tableRow(w, name, what, quantileText(one, 0.5), quantileText(one, 0.9), quantileText(one, tail),
				quantileText(one, 1),
				wire, one.Bound, verdictText(one))
		}
		for _, one := range chief(selected(records, func(one result.Record) bool { return one.Program == own })) {
			row(name, one, wire)
			name, wire = "", ""
			for _, other := range records {
				if other.Program != own && other.Metric == one.Metric {
					row("", other, "")
				}
			}
		}
	}
}

// measured returns the program of a scenario that has bounds, or else the first.
func measured(records []result.Record) string {
	for _, one := range records {
		if one.Bound != "" {
			return one.Program
		}
	}
	return records[0].Program
}

// chief returns the records of one program that a table shows of a scenario: those with
// bounds, what it gives before what it costs; or else the first.
func chief(records []result.Record) []result.Record {
	if len(records) == 0 {
		return nil
	}
	bounded := selected(records, func(r result.Record) bool { return r.Bound != "" })
	if len(bounded) == 0 {
		return records[:1]
	}
	costs := func(r result.Record) bool { return result.About(r.Metric).Cost }
	gives := func(r result.Record) bool { return !costs(r) }
	return append(selected(bounded, gives), selected(bounded, costs)...)
}

// what names a metric with its unit.
func what(r result.Record) string {
	if r.Unit == "" {
		return r.Metric
	}
	return r.Metric + ", " + r.Unit
}

// quantileText returns what a share of the values are as good as, or better, if there are
// enough values to say so.
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

// many is how many values have a 99th percentile.
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
	r.programsTable(w, "median / p99, or worst of few", "")
	for _, scenario := range r.scenarios {
		records := r.of(scenario)
		name := scenario
		for _, example := range given(records) {
			r.programsRow(w, func(program string) string { return programCell(records, program, example.Metric) }, name,
				what(example))
			name = ""
		}
	}
}

// given returns a record of each metric by which programs are compared in a scenario: of
// what they give, or else what is on the wire. If something happens on the link, it is
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

// programCell returns the figures of a program.
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
	r.programsTable(w, "wire, cpu, memory of a session, both ends")
	for _, scenario := range r.scenarios {
		records := r.of(scenario)
		r.programsRow(w, func(program string) string { return costCell(records, program) }, scenario)
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

// reasons say why programs did not do scenarios, and which figures are not to be believed.
func (r *report) reasons() (all []string) {
	for _, one := range r.records {
		note := ""
		switch one.Verdict {
		case result.Never, result.Failed:
			note = fmt.Sprintf("%s, %s: %s: %s", one.Scenario, one.Program, one.Verdict, one.Why)
		case result.Busy:
			note = fmt.Sprintf("%s, %s: the machine was busy, for %s ms at a time", one.Scenario, one.Program,
				figureText(one.StallMS))
		}
		if note != "" {
			all = appendNew(all, note)
		}
	}
	return all
}

// meanings say what the metrics are.
func (r *report) meanings() (all []string) {
	shown := r.records
	if r.bounded() {
		shown = nil
		for _, scenario := range r.scenarios {
			shown = append(shown, chief(r.of(scenario))...)
		}
	}
	for _, one := range shown {
		if m := result.About(one.Metric).Meaning; m != "" && len(one.Values) > 0 {
			all = appendNew(all, one.Metric+": "+m)
		}
	}
	return all
}
