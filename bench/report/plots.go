//go:build linux

package report

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/quicterm/quicterm/bench/plot"
	"github.com/quicterm/quicterm/bench/result"
)

// maxMarks is how many events a timeline shows at most: more labels are not legible.
const maxMarks = 24

// A drawing is a plot in an SVG file beside the file of results.
type drawing struct {
	title, file string
	chart       *plot.Chart
}

// draw draws plots into the folder of a file of results.
func (r *report) draw(folder string) ([]drawing, error) {
	drawings := r.charts()
	for _, d := range drawings {
		if err := d.chart.Save(filepath.Join(folder, d.file)); err != nil {
			return nil, err
		}
	}
	return drawings, nil
}

// charts shows how echoes are distributed if nothing happens on the link, and when they come
// if something does.
func (r *report) charts() (drawings []drawing) {
	add := func(title, name string, c *plot.Chart) {
		drawings = append(drawings, drawing{title, r.name + "-" + slug(name) + ".svg", c})
	}
	if growths := r.growths(); len(growths) > 0 {
		for _, growth := range growths {
			add("how cost grows with "+growth, growth, r.growthChart(growth))
		}
		return drawings
	}
	if steady := r.steady(); len(r.programs) == 1 && len(steady) > 0 {
		title := r.programs[0] + ", from a key to its echo"
		add(title, "echoes", plot.CDF(title, steady[0].RTT, byScenario(steady)))
	}
	if all := r.recoveries(); len(all) > 0 {
		const title = "from an event, or the first key after it, to the echo"
		add(title, "recovery", plot.CDF(title, all[0].RTT, byScenario(all)))
	}
	for _, scenario := range r.scenarios {
		records := r.of(scenario)
		echo, ok := first(records, echoes)
		switch {
		case !ok || echo.Stagger > 0 || len(echo.Events) > maxMarks:
		case len(echo.Events) > 0:
			add(scenario, scenario, plot.Timeline(scenario, echo.Events, r.byProgram(records, false)))
		case len(r.programs) > 1:
			add(scenario, scenario, plot.CDF(scenario, echo.RTT, r.byProgram(records, true)))
		}
	}
	return drawings
}

// echoes reports whether a record has echoes that can be drawn.
func echoes(r result.Record) bool { return r.Metric == "truth" && len(r.At) > 0 }

// steady returns the echoes on links on which nothing happens, and whose round trip is that
// of the first, from the least loss to the most.
func (r *report) steady() (all []result.Record) {
	for _, one := range r.records {
		if echoes(one) && len(one.Events) == 0 && (len(all) == 0 || one.RTT == all[0].RTT) {
			all = append(all, one)
		}
	}
	slices.SortStableFunc(all, func(a, b result.Record) int { return cmp.Compare(a.Loss, b.Loss) })
	return all
}

// recoveries returns how soon sessions recovered in scenarios in which something happens to
// one client after the other.
func (r *report) recoveries() []result.Record {
	return selected(r.records, func(one result.Record) bool {
		return one.Stagger > 0 && (one.Metric == "back" || one.Metric == "recovery") && len(one.Values) > 0
	})
}

// byScenario returns a series for each record.
func byScenario(records []result.Record) (all []plot.Series) {
	for i, r := range records {
		all = append(all, plot.Series{Name: r.Scenario, Color: plot.Step(i, len(records)), Values: r.Values})
	}
	return all
}

// predicted is the share of the truth's median below which the median of feel shows that a
// program predicts echoes.
const predicted = 0.8

// byProgram returns a series for each program, and if felt is set a dashed one of what it
// predicts.
func (r *report) byProgram(records []result.Record, felt bool) (all []plot.Series) {
	for _, program := range r.programs {
		truth, _ := find(records, program, "truth")
		s := plot.Series{Name: program, Color: plot.Program(program), Values: truth.Values, At: truth.At}
		if why, is := lost(records, program); is {
			s.Name += ": " + why.Verdict
		} else if !echoes(truth) {
			continue
		}
		all = append(all, s)
		feel, _ := find(records, program, "feel")
		if felt && feel.Quantile(0.5) < predicted*truth.Quantile(0.5) {
			all = append(all, plot.Series{Name: program + ", predicted", Color: s.Color, Dashed: true, Values: feel.Values})
		}
	}
	return all
}

// slug returns a name for a file.
func slug(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
	return strings.Join(words, "-")
}
