//go:build linux

package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/quicterm/quicterm/bench/result"
)

// growths returns what grows, in the order of the records.
func (r *report) growths() (all []string) {
	for _, one := range r.records {
		if one.Growth != "" {
			all = appendNew(all, one.Growth)
		}
	}
	return all
}

// grown returns the records of what grows, from the smallest to the largest.
func (r *report) grown(growth string) []result.Record {
	records := selected(r.records, func(one result.Record) bool { return one.Growth == growth })
	slices.SortStableFunc(records, func(a, b result.Record) int { return cmp.Compare(a.Size, b.Size) })
	return records
}

// A growthColumn is a quantile of a metric.
type growthColumn struct {
	metric   string
	quantile float64
}

// growthColumns are shown of what grows, if they were measured.
var growthColumns = []growthColumn{
	{"truth", 0.5}, {"truth", 0.99}, {"back", 0.5}, {"back", 1}, {"own memory", 0.5}, {"idle cpu", 0.5},
	{"append", 0.5}, {"resume", 0.5}, {"wire", 0.5}, {"cpu a key", 0.5},
}

func (c growthColumn) title(unit string) string {
	title := c.metric
	switch {
	case c.quantile == 1:
		title += ", worst"
	case c.metric == "truth" || c.metric == "back":
		title += fmt.Sprintf(", p%.0f", 100*c.quantile)
	}
	return strings.TrimSpace(title + ", " + unit)
}

// growthTable writes a row for each size, with columns of what was measured.
func (r *report) growthTable(w io.Writer, growth string) {
	records := r.grown(growth)
	var titles []string
	var columns []growthColumn
	for _, c := range growthColumns {
		measured := func(one result.Record) bool { return one.Metric == c.metric && len(one.Values) > 0 }
		if i := slices.IndexFunc(records, measured); i >= 0 {
			columns = append(columns, c)
			titles = append(titles, c.title(records[i].Unit))
		}
	}
	tableRow(w, append([]string{growth}, append(titles, "bound", "")...)...)
	fmt.Fprintf(w, "|%s\n", strings.Repeat("---|", len(titles)+3))
	for len(records) > 0 {
		n := slices.IndexFunc(records, func(one result.Record) bool { return one.Size != records[0].Size })
		if n < 0 {
			n = len(records)
		}
		row, bound, verdict := []string{fmt.Sprintf("%.4g", records[0].Size)}, "", ""
		for _, c := range columns {
			cell := ""
			for _, one := range records[:n] {
				if one.Metric == c.metric && len(one.Values) > 0 {
					cell = figureText(one.Quantile(c.quantile))
				}
			}
			row = append(row, cell)
		}
		for _, one := range records[:n] {
			if one.Bound != "" || one.Verdict == result.Failed {
				bound, verdict = strings.TrimSpace(one.Metric+" "+one.Bound), verdictText(one)
			}
		}
		tableRow(w, append(row, bound, verdict)...)
		records = records[n:]
	}
}
