//go:build linux

package report

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
	rank  int  // the highest is left out first if the table is too wide; 0 stays
	cell  func(r result.Record, costs map[string]float64) string
}

// columns of the table. What a session cost, both sides together, is beside its scenario's
// first metric.
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

// Places of columns.
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

// verdictCell makes every verdict except ok stand out.
func verdictCell(r result.Record, _ map[string]float64) string {
	if r.Verdict == result.OK {
		return r.Verdict
	}
	return strings.ToUpper(r.Verdict)
}

// Table returns records as lines of text. If they are longer than a width (0 is any),
// columns are left out. Notes, such as why there are no figures, are below.
func Table(records []result.Record, width int) string {
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
	var shown []filledColumn
	for i, c := range columns {
		f := filledColumn{column: c, width: utf8.RuneCountInString(c.title)}
		for _, row := range rows {
			f.cells = append(f.cells, row[i])
			f.width = max(f.width, utf8.RuneCountInString(row[i]))
		}
		if empty := strings.Join(f.cells, "") == ""; !empty && (c.title != "PROGRAM" || compares(records)) {
			shown = append(shown, f)
		}
	}
	return formatted(fitting(shown, width), len(rows)) + below.String()
}

// A filledColumn is a column of a table.
type filledColumn struct {
	column
	cells []string
	width int
}

const columnGap = "  "

// fitting leaves out columns until the others fit a width, or none may be left out.
func fitting(shown []filledColumn, width int) []filledColumn {
	for width > 0 {
		line, worst := -len(columnGap), 0
		for _, c := range shown {
			line += len(columnGap) + c.width
			worst = max(worst, c.rank)
		}
		if line <= width || worst == 0 {
			break
		}
		shown = slices.DeleteFunc(shown, func(c filledColumn) bool { return c.rank == worst })
	}
	return shown
}

// formatted returns the lines of a table. The scenario and the program are not repeated.
func formatted(shown []filledColumn, rows int) string {
	var b strings.Builder
	for n := -1; n < rows; n++ { // the titles are above the first row
		var line []string
		repeats := n > 0
		for _, c := range shown {
			text := c.title
			if n >= 0 {
				text = c.cells[n]
			}
			if repeats = repeats && text == c.cells[n-1] && (c.title == "SCENARIO" || c.title == "PROGRAM"); repeats {
				text = ""
			}
			if c.right {
				line = append(line, fmt.Sprintf("%*s", c.width, text))
			} else {
				line = append(line, fmt.Sprintf("%-*s", c.width, text))
			}
		}
		fmt.Fprintln(&b, strings.TrimRight(strings.Join(line, columnGap), " "))
	}
	return b.String()
}

// compares reports whether records are of several programs.
func compares(records []result.Record) bool {
	programs := make(map[string]bool)
	for _, r := range records {
		if r.Scenario != result.EmulatedLink {
			programs[r.Program] = true
		}
	}
	return len(programs) > 1
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

// joined joins the first two rows if they have the same figures and the first has no
// verdict: what the program shows at once is true.
func joined(rows [][]string) [][]string {
	if len(rows) < 2 || rows[0][firstFigure] == "" || rows[0][verdictColumn] != "" || !slices.Equal(rows[0][firstFigure:lastFigure+1], rows[1][firstFigure:lastFigure+1]) {
		return rows
	}
	row := slices.Clone(rows[0])
	row[metricColumn] += ", " + rows[1][metricColumn]
	copy(row[boundColumn:], rows[1][boundColumn:])
	return append([][]string{row}, rows[2:]...)
}

// ScreenWidth returns the width of the terminal that w is, or 0 if it is none.
func ScreenWidth(w io.Writer) int {
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
