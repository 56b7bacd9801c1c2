//go:build linux

package report

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/quicterm/quicterm/bench/result"
)

// The columns of the table of results. What a session cost, both sides together, is beside its scenario's
// first metric.
var columns = []string{"SCENARIO", "PROGRAM", "MEASURED", "P50", "P90", "P99", "MAX", "UNIT", "WIRE kB/s", "CPU s",
	"MEM MB", "BOUND", "VERDICT"}

// Places of columns.
const (
	programColumn = 1
	metricColumn  = 2
	firstFigure   = 3
	lastFigure    = 7 // the unit
	boundColumn   = 11
	verdictColumn = 12
)

// rowOf returns the cells of a record, with the costs of its scenario. Every verdict except ok stands out.
func rowOf(r result.Record, costs map[string]float64) []string {
	figure := func(q float64, least int) string {
		if len(r.Values) < least {
			return ""
		}
		return figureText(r.Quantile(q))
	}
	cost := func(factor float64, metrics ...string) string {
		sum := 0.0
		for _, m := range metrics {
			one, ok := costs[m]
			if !ok {
				return ""
			}
			sum += one
		}
		return figureText(factor * sum)
	}
	verdict := r.Verdict
	if verdict != result.OK {
		verdict = strings.ToUpper(verdict)
	}
	return []string{
		r.Scenario, r.Program, r.Metric, figure(0.5, 1), figure(0.9, 10), figure(0.99, many), figure(1, 2), r.Unit,
		cost(1e-3, "wire"), cost(1, "client cpu", "server cpu"), cost(1, "client memory", "server memory"), r.Bound, verdict,
	}
}

// Table returns records as lines of text. Notes, such as why there are no figures, are below.
func Table(records []result.Record) string {
	var rows [][]string
	for first := 0; first < len(records); {
		last := first
		for last < len(records) && records[last].Scenario == records[first].Scenario &&
			records[last].Program == records[first].Program {
			last++
		}
		rows = append(rows, rowsOf(records[first:last])...)
		first = last
	}
	var b strings.Builder
	formatted(&b, rows, compares(records))
	for i, r := range records {
		if r.Why != "" && (i == 0 || records[i-1].Why != r.Why) {
			parts := slices.DeleteFunc([]string{r.Scenario + ", " + r.Program, r.Verdict, r.Why},
				func(s string) bool { return s == "" })
			fmt.Fprintln(&b, strings.Join(parts, ": "))
		}
	}
	return b.String()
}

// formatted writes the lines of a table, without its empty columns. The scenario and the program are not repeated.
func formatted(b *strings.Builder, rows [][]string, programs bool) {
	widths := make([]int, len(columns))
	for _, row := range rows {
		for i, text := range row {
			if text != "" && (programs || i != programColumn) {
				widths[i] = max(widths[i], utf8.RuneCountInString(text), len(columns[i]))
			}
		}
	}
	for n, row := range slices.Concat([][]string{columns}, rows) {
		var line []string
		repeats := n > 1
		for i, text := range row {
			if repeats = repeats && i <= programColumn && text == rows[n-2][i]; repeats {
				text = ""
			}
			switch right := i >= firstFigure && i < boundColumn && i != lastFigure; {
			case widths[i] == 0:
			case right:
				line = append(line, fmt.Sprintf("%*s", widths[i], text))
			default:
				line = append(line, fmt.Sprintf("%-*s", widths[i], text))
			}
		}
		fmt.Fprintln(b, strings.TrimRight(strings.Join(line, "  "), " "))
	}
}

// compares reports whether records are of several programs.
func compares(records []result.Record) bool {
	return slices.ContainsFunc(records, func(r result.Record) bool { return r.Program != records[0].Program })
}

// rowsOf returns the rows of what a program did in a scenario. Costs without a bound are
// columns, not rows, unless there is nothing else.
func rowsOf(records []result.Record) [][]string {
	costs := make(map[string]float64)
	var main []result.Record
	for _, r := range records {
		if result.About(r.Metric).Cost && len(r.Values) > 0 {
			costs[r.Metric] = r.Quantile(0.5)
		}
		if !result.About(r.Metric).Cost || r.Bound != "" {
			main = append(main, r)
		}
	}
	if len(main) == 0 {
		main = records[:1]
	}
	var rows [][]string
	for _, r := range main {
		rows = append(rows, rowOf(r, costs))
		costs = nil
	}
	return joined(rows)
}

// joined joins the first two rows if they have the same figures and the first has no
// verdict: what the program shows at once is true.
func joined(rows [][]string) [][]string {
	figures := func(row []string) []string { return row[firstFigure : lastFigure+1] }
	if len(rows) < 2 || rows[0][firstFigure] == "" || rows[0][verdictColumn] != "" ||
		!slices.Equal(figures(rows[0]), figures(rows[1])) {
		return rows
	}
	rows[0][metricColumn] += ", " + rows[1][metricColumn]
	copy(rows[0][boundColumn:], rows[1][boundColumn:])
	return slices.Delete(rows, 1, 2)
}
