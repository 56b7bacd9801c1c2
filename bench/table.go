//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/quicterm/quicterm/bench/result"
)

// A column of the table of results.
type column struct {
	title string
	right bool // aligned
	rank  int  // the highest is left out first where the table is too wide; 0 stays
	cell  func(r result.Record, costs map[string]float64) string
}

// columns are of all metrics of a scenario. What a session cost, of both ends together,
// is beside the first.
var columns = []column{
	{title: "SCENARIO", cell: func(r result.Record, _ map[string]float64) string { return r.Scenario }},
	{title: "PROGRAM", cell: func(r result.Record, _ map[string]float64) string { return r.Program }},
	{title: "MEASURED", cell: func(r result.Record, _ map[string]float64) string { return r.Metric }},
	{title: "P50", right: true, cell: quantileCell(0.5, 1)},
	{title: "P90", right: true, rank: 1, cell: quantileCell(0.9, 10)},
	{title: "P99", right: true, cell: quantileCell(0.99, 100)},
	{title: "MAX", right: true, cell: quantileCell(1, 2)},
	{title: "UNIT", cell: func(r result.Record, _ map[string]float64) string { return r.Unit }},
	{title: "WIRE kB/s", right: true, rank: 2, cell: costsCell(1e-3, "wire")},
	{title: "CPU s", right: true, rank: 5, cell: costsCell(1, "client cpu", "server cpu")},
	{title: "MEM MB", right: true, rank: 4, cell: costsCell(1, "client memory", "server memory")},
	{title: "BOUND", rank: 3, cell: func(r result.Record, _ map[string]float64) string { return r.Bound }},
	{title: "VERDICT", cell: verdictCell},
}

// Where columns are.
const (
	metricColumn  = 2
	firstFigure   = 3
	lastFigure    = 7 // the unit
	boundColumn   = 11
	verdictColumn = 12
)

// quantileCell shows a quantile of at least so many values.
func quantileCell(q float64, least int) func(result.Record, map[string]float64) string {
	return func(r result.Record, _ map[string]float64) string {
		if len(r.Values) < least {
			return ""
		}
		return figureText(r.Quantile(q))
	}
}

// costsCell shows the sum of some costs.
func costsCell(factor float64, metrics ...string) func(result.Record, map[string]float64) string {
	return func(_ result.Record, costs map[string]float64) string {
		sum := 0.0
		for _, m := range metrics {
			cost, ok := costs[m]
			if !ok {
				return ""
			}
			sum += cost
		}
		return figureText(factor * sum)
	}
}

// verdictCell has what is not as it should be stand out.
func verdictCell(r result.Record, _ map[string]float64) string {
	if r.Verdict == result.OK {
		return r.Verdict
	}
	return strings.ToUpper(r.Verdict)
}

// table returns results as lines of text. Where they would be longer than a width (0 for
// any), columns are left out. Why something has no figures is said below.
func table(records []result.Record, width int) string {
	var rows [][]string
	var below strings.Builder
	for first := 0; first < len(records); {
		last := first
		for last < len(records) && records[last].Scenario == records[first].Scenario && records[last].Program == records[first].Program {
			last++
		}
		rows = append(rows, rowsOf(records[first:last])...)
		first = last
	}
	for i, r := range records {
		if r.Why != "" && (i == 0 || records[i-1].Why != r.Why) {
			parts := slices.DeleteFunc([]string{r.Scenario + ", " + r.Program, r.Verdict, r.Why}, func(s string) bool { return s == "" })
			fmt.Fprintln(&below, strings.Join(parts, ": "))
		}
	}
	// Columns that are empty are not needed, nor is the program where there is one.
	shown := slices.Clone(columns)
	drop := func(i int) {
		shown = slices.Delete(shown, i, i+1)
		for n := range rows {
			rows[n] = slices.Delete(rows[n], i, i+1)
		}
	}
	for i := len(shown) - 1; i >= 0; i-- {
		empty := func(row []string) bool { return row[i] == "" }
		if shown[i].title == "PROGRAM" && !compares(records) || !slices.ContainsFunc(rows, not(empty)) {
			drop(i)
		}
	}
	for width > 0 && lineWidth(shown, rows) > width {
		worst := 0
		for i, c := range shown {
			if c.rank > shown[worst].rank {
				worst = i
			}
		}
		if shown[worst].rank == 0 {
			break
		}
		drop(worst)
	}
	return formatted(shown, rows) + below.String()
}

// compares reports whether records are of several programs.
func compares(records []result.Record) bool {
	programs := make(map[string]bool)
	for _, r := range records {
		if r.Scenario != emulatedLink {
			programs[r.Program] = true
		}
	}
	return len(programs) > 1
}

func not(f func([]string) bool) func([]string) bool {
	return func(row []string) bool { return !f(row) }
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
	for i, r := range main {
		if i > 0 {
			costs = nil
		}
		row := make([]string, len(columns))
		for n, c := range columns {
			row[n] = c.cell(r, costs)
		}
		rows = append(rows, row)
	}
	return joined(rows)
}

// joined returns rows with one for two metrics that follow each other with the same
// figures, if the first has no verdict: what a program shows at once is true.
func joined(rows [][]string) [][]string {
	if len(rows) < 2 || rows[0][firstFigure] == "" || rows[0][verdictColumn] != "" || !slices.Equal(rows[0][firstFigure:lastFigure+1], rows[1][firstFigure:lastFigure+1]) {
		return rows
	}
	row := slices.Clone(rows[0])
	row[metricColumn] += ", " + rows[1][metricColumn]
	copy(row[boundColumn:], rows[1][boundColumn:])
	return append([][]string{row}, rows[2:]...)
}

const columnGap = "  "

// widths returns how wide the columns are.
func widths(shown []column, rows [][]string) []int {
	w := make([]int, len(shown))
	for i, c := range shown {
		w[i] = utf8.RuneCountInString(c.title)
		for _, row := range rows {
			w[i] = max(w[i], utf8.RuneCountInString(row[i]))
		}
	}
	return w
}

func lineWidth(shown []column, rows [][]string) int {
	sum := len(columnGap) * (len(shown) - 1)
	for _, w := range widths(shown, rows) {
		sum += w
	}
	return sum
}

// formatted returns the lines of a table. The scenario and the program are not repeated.
func formatted(shown []column, rows [][]string) string {
	var b strings.Builder
	w := widths(shown, rows)
	line := func(cells []string) {
		var l strings.Builder
		for i, c := range cells {
			pad := strings.Repeat(" ", w[i]-utf8.RuneCountInString(c))
			if i > 0 {
				l.WriteString(columnGap)
			}
			if shown[i].right {
				l.WriteString(pad + c)
			} else {
				l.WriteString(c + pad)
			}
		}
		b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
	}
	titles := make([]string, len(shown))
	for i, c := range shown {
		titles[i] = c.title
	}
	line(titles)
	for n, row := range rows {
		row := slices.Clone(row)
		for i := 0; n > 0 && i < len(row) && row[i] == rows[n-1][i] && (shown[i].title == "SCENARIO" || shown[i].title == "PROGRAM"); i++ {
			row[i] = ""
		}
		line(row)
	}
	return b.String()
}

// screenWidth returns how wide the terminal is that is written to, or 0 if it is none.
func screenWidth(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}
