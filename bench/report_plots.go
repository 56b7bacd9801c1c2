//go:build linux

package main

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/quicterm/quicterm/bench/plot"
	"github.com/quicterm/quicterm/bench/result"
)

// A drawing is a plot in two files that differ by .svg and .png.
type drawing struct{ title, base string }

// draw draws plots beside a file of results: how echoes are distributed where nothing
// happens on the link, and when they come where something does.
func (r *report) draw(base string) ([]drawing, error) {
	var drawings []drawing
	save := func(title, name string, c *plot.Chart) error {
		d := drawing{title, base + "-" + slug(name)}
		drawings = append(drawings, d)
		return c.Save(d.base)
	}
	if len(r.programs) == 1 {
		if calm := r.calm(); len(calm) > 0 {
			title := r.programs[0] + ", from a key to its echo"
			if err := save(title, "echoes", plot.CDF(title, calm[0].RTT, byLoss(calm))); err != nil {
				return nil, err
			}
		}
	}
	for _, scenario := range r.scenarios {
		records := r.of(scenario)
		first := slices.IndexFunc(records, echoes)
		if first < 0 {
			continue
		}
		var err error
		switch events := records[first].Events; {
		case len(events) > 0:
			err = save(scenario, scenario, plot.Timeline(scenario, events, r.byProgram(records, false)))
		case len(r.programs) > 1:
			err = save(scenario, scenario, plot.CDF(scenario, records[first].RTT, r.byProgram(records, true)))
		}
		if err != nil {
			return nil, err
		}
	}
	return drawings, nil
}

// echoes says whether a record has echoes that can be drawn.
func echoes(r result.Record) bool { return r.Metric == "truth" && len(r.At) > 0 }

// calm returns the echoes on links on which nothing happens, and whose round trip is that
// of the first, from the least loss to the most.
func (r *report) calm() (all []result.Record) {
	for _, one := range r.records {
		if echoes(one) && len(one.Events) == 0 && (len(all) == 0 || one.RTT == all[0].RTT) {
			all = append(all, one)
		}
	}
	slices.SortStableFunc(all, func(a, b result.Record) int { return cmp.Compare(a.Loss, b.Loss) })
	return all
}

// byLoss returns a series for each record.
func byLoss(records []result.Record) (all []plot.Series) {
	for i, r := range records {
		all = append(all, plot.Series{Name: r.Scenario, Color: plot.Step(i, len(records)), Values: r.Values})
	}
	return all
}

// predicted is the share of the truth's median that the median of what is felt is less
// than where a program predicts echoes.
const predicted = 0.8

// byProgram returns a series for each program, and if wanted a dashed one of what is felt
// where that is not the truth.
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
