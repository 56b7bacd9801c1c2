//go:build linux

package report

import (
	"strings"
	"testing"

	"github.com/quicterm/quicterm/bench/result"
)

// hundred returns 100 values from first on.
func hundred(first float64) []float64 {
	values := make([]float64, 100)
	for i := range values {
		values[i] = first + float64(i)
	}
	return values
}

// tableRecords are of all kinds.
func tableRecords() []result.Record {
	r := func(scenario, program, metric, unit string, values []float64, bound, verdict, why string) result.Record {
		return result.Record{Scenario: scenario, Program: program, Metric: metric, Unit: unit, Values: values, Bound: bound,
			Verdict: verdict, Why: why}
	}
	return []result.Record{
		r("typing", "quicterm", "feel", "ms", hundred(101), "", "", ""),
		r("typing", "quicterm", "truth", "ms", hundred(101), "p50 110, p99 120", result.Missed, ""),
		r("typing", "quicterm", "wire", "B/s", []float64{1579}, "max 1600", result.OK, ""),
		r("typing", "quicterm", "client cpu", "s", []float64{0.1}, "", "", ""),
		r("typing", "quicterm", "server cpu", "s", []float64{0.15}, "", "", ""),
		r("typing", "quicterm", "client memory", "MB", []float64{4}, "", "", ""),
		r("typing", "quicterm", "server memory", "MB", []float64{5}, "", "", ""),
		r("roaming", "quicterm", "back", "ms", []float64{230, 250}, "", "", ""),
		r("roaming", "quicterm", "wire", "B/s", []float64{2000}, "", "", ""),
	}
}

func wantTable(t *testing.T, got, want string) {
	t.Helper()
	if got != strings.TrimPrefix(want, "\n") {
		t.Errorf("got\n%s\nwant%s", got, want)
	}
}

func TestTable(t *testing.T) {
	wantTable(t, Table(tableRecords()), `
SCENARIO  MEASURED      P50  P90  P99  MAX  UNIT  WIRE kB/s  CPU s  MEM MB  BOUND             VERDICT
typing    feel, truth   150  190  199  200  ms         1.58  0.250    9.00  p50 110, p99 120  MISSED
          wire         1579                 B/s                             max 1600          ok
roaming   back          230            250  ms         2.00
`)
}

func TestTableOfPrograms(t *testing.T) {
	records := tableRecords()[:2]
	records[0].Values = hundred(5)
	records[1].Verdict = ""
	never := result.Record{Scenario: "typing", Program: "ssh", Metric: "truth", Verdict: result.Never,
		Why: "1 of 2 keys are not answered"}
	wantTable(t, Table(append(records, never)), `
SCENARIO  PROGRAM   MEASURED   P50   P90  P99  MAX  UNIT  BOUND             VERDICT
typing    quicterm  feel      54.0  94.0  103  104  ms
                    truth      150   190  199  200  ms    p50 110, p99 120
          ssh       truth                                                   NEVER
typing, ssh: never: 1 of 2 keys are not answered
`)
}

func TestTableOfNothing(t *testing.T) {
	if text := Table(nil); strings.Count(text, "\n") > 1 {
		t.Errorf("%q", text)
	}
}
