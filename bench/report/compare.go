//go:build linux

package report

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/quicterm/quicterm/bench/result"
)

// CompareRule is how Compare decides, for people.
var CompareRule = fmt.Sprintf(`Compare two files of results: for every metric of every program and scenario that is
in both, the medians, their ratio, and whether they differ by more than the noise.

A file may hold several runs of a scenario. Those of the last commit count, and the median
is that of all their values. Its interval, if the scenario were measured again, is
  - the %.0f %% confidence interval of the median by order statistics, which assumes no
    distribution; if there are too few values for that, from the smallest to the largest,
  - extended to where the median of another run would be, with the same confidence and by
    Student's t-distribution of the medians of the runs,
  - or, if there are fewer than %d, to them and by %.0f %% of the median on each side, as
    their spread is not known.
With fewer than %d values in all it is the median and %.0f %% of it on each side.
Two medians differ if their intervals have nothing in common. Figures of a busy machine
are left out. Several files can be concatenated
to one of several runs.

If there are enough values for such an interval of the worst %.0f %%, it is compared in the
same way, but extended by %.0f %% if there are fewer than %d runs. It is shown only if it
differs.

A result got worse if it differs and is worse by more than %.0f %%, or if a program fails,
or never does, what it did before. Of some metrics, such as rate, more is better; of most,
less.

The exit status is 0 if nothing got worse, 1 if something did, and 2 if the files
cannot be read, or have nothing in common.`,
	100*confidence, fewRuns, 100*runSpread, fewValues, 100*fewSpread, 100*(1-tail), 100*tailSpread, fewRuns,
	100*significant)

// tail is the quantile that is looked at beside the median, where less is better.
const tail = 0.99

// A BadInput is an error of the files that Compare got, not of what they say.
type BadInput struct{ error }

// NewBadInput returns an error of what a command got.
func NewBadInput(err error) error { return BadInput{err} }

func (e BadInput) Unwrap() error { return e.error }

// CompareFiles is Compare of two files.
func CompareFiles(w, warnings io.Writer, old, new string, portable bool) error {
	var records [2][]result.Record
	for i, path := range []string{old, new} {
		var err error
		if records[i], err = read(warnings, path); err != nil {
			return BadInput{err}
		}
	}
	return Compare(w, records[0], records[1], portable)
}

// A subject is what is compared.
type subject struct{ scenario, program, metric string }

// An outcome is what the runs of a file say of a subject.
type outcome struct {
	unit string
	runs [][]float64
	lost string // why a run failed, or the program never does it
}

// outcomes are those of a file.
type outcomes struct {
	of    map[subject]*outcome
	order []subject
}

func outcomesOf(records []result.Record, portable bool) outcomes {
	o := outcomes{of: make(map[subject]*outcome)}
	commits := make(map[subject]string) // that were measured last
	for _, r := range records {
		commits[subject{scenario: r.Scenario, program: r.Program}] = r.Commit
	}
	for _, r := range records {
		if r.Commit != commits[subject{scenario: r.Scenario, program: r.Program}] {
			continue
		}
		lost := r.Verdict == result.Never || r.Verdict == result.Failed
		if r.Verdict == result.Busy || !lost && (len(r.Values) == 0 || portable && !r.Portable) {
			continue
		}
		s := subject{r.Scenario, r.Program, r.Metric}
		if o.of[s] == nil {
			o.of[s] = new(outcome)
			o.order = append(o.order, s)
		}
		if lost {
			o.of[s].lost = strings.TrimSuffix(r.Verdict+": "+r.Why, ": ")
		} else {
			o.of[s].unit = r.Unit
			o.of[s].runs = append(o.of[s].runs, r.Values)
		}
	}
	return o
}

// lost returns why a subject was not measured, or "" if it was.
func (o outcomes) lost(s subject) string {
	if o.of[s] == nil {
		return ""
	}
	return o.of[s].lost
}

// did reports whether any metric of a subject's program was measured in its scenario. A
// failure has no metrics.
func (o outcomes) did(s subject) bool {
	return slices.ContainsFunc(o.order, func(other subject) bool {
		return other.scenario == s.scenario && other.program == s.program && o.of[other].lost == ""
	})
}

// A comparison is a line of the table.
type comparison struct {
	subject
	old, new, ratio, verdict string
}

const worse = "WORSE"

// Compare writes a table, and returns an error if something got worse.
func Compare(w io.Writer, old, new []result.Record, portable bool) error {
	before, after := outcomesOf(old, portable), outcomesOf(new, portable)
	order := slices.Clone(before.order)
	for _, s := range after.order {
		if before.of[s] == nil {
			order = append(order, s)
		}
	}
	var lines []comparison
	onlyOld, onlyNew := 0, 0
	for _, s := range order {
		wasLost, isLost := before.lost(s), after.lost(s)
		switch {
		case wasLost != "" && isLost != "":
			lines = append(lines, comparison{s, wasLost, isLost, "", "same"})
		case isLost != "" && before.did(s):
			lines = append(lines, comparison{s, "done", isLost, "", worse})
		case wasLost != "" && after.did(s):
			lines = append(lines, comparison{s, wasLost, "done", "", "better"})
		case after.of[s] == nil:
			onlyOld++
		case before.of[s] == nil:
			onlyNew++
		default:
			lines = append(lines, compareFigures(s, before.of[s], after.of[s])...)
		}
	}
	if len(lines) == 0 {
		return BadInput{errors.New("the files have nothing in common that can be compared")}
	}
	if a, b := old[0].Machine.String(), new[0].Machine.String(); a != b && !portable {
		fmt.Fprintf(w, "The machines differ: %s, and %s. --portable leaves out what depends on them.\n", a, b)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SCENARIO\tPROGRAM\tMETRIC\tOLD\tNEW\tRATIO\tVERDICT")
	worst := 0
	for _, l := range lines {
		if l.verdict == worse {
			worst++
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.scenario, l.program, l.metric, l.old, l.new, l.ratio, l.verdict)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if onlyOld+onlyNew > 0 {
		fmt.Fprintf(w, "Only in the old file: %d, only in the new one: %d.\n", onlyOld, onlyNew)
	}
	if worst > 0 {
		return fmt.Errorf("%d of %d got worse", worst, len(lines))
	}
	return nil
}

// compareFigures compares what was measured in both files: the medians, and the tails if
// they differ.
func compareFigures(s subject, old, new *outcome) []comparison {
	more := result.About(s.metric).MoreIsBetter
	line := func(metric string, before, after estimate) comparison {
		c := comparison{s, before.text(old.unit), after.text(new.unit), "-", verdictOf(before, after, more)}
		c.metric = metric
		if before.value != 0 {
			c.ratio = fmt.Sprintf("%.2f", after.value/before.value)
		}
		return c
	}
	lines := []comparison{line(s.metric, medianOf(old.runs), medianOf(new.runs))}
	q := tail
	if more {
		q = 1 - tail
	}
	before, known := tailOf(old.runs, q)
	after, too := tailOf(new.runs, q)
	if known && too && before.differs(after) {
		lines = append(lines, line(fmt.Sprintf("%s, p%.0f", s.metric, 100*q), before, after))
	}
	return lines
}

// verdictOf compares two estimates.
func verdictOf(before, after estimate, moreIsBetter bool) string {
	loss := after.value - before.value
	if moreIsBetter {
		loss = -loss
	}
	switch {
	case !before.differs(after):
		return "same"
	case loss < 0:
		return "better"
	case loss > significant*math.Abs(before.value):
		return worse
	default:
		return fmt.Sprintf("worse by less than %.0f %%", 100*significant)
	}
}

// text returns the estimate with its interval.
func (e estimate) text(unit string) string {
	return strings.TrimSpace(fmt.Sprintf("%s (%s to %s) %s", figureText(e.value), figureText(e.low), figureText(e.high),
		unit))
}

// figureText returns a figure with three digits at least.
func figureText(v float64) string {
	decimals := 2
	if v != 0 {
		decimals = min(max(2-int(math.Floor(math.Log10(math.Abs(v)))), 0), 4)
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}
