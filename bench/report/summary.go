//go:build linux

package report

import (
	"fmt"
	"strings"

	"github.com/quicterm/quicterm/bench/result"
)

// summaryRows are the rows of a summary: one figure of a scenario each.
var summaryRows = []struct {
	text, scenario, metric string
	quantile               float64
}{
	{"a key's echo at 29 % loss each way, 99 % within", "typing, 29 % loss", "truth", tail},
	{"the next echo after the address changes", "another address", "back", 0.5},
	{"the next echo after a NAT forgets the client", "the NAT forgets", "back", 0.5},
	{"output of a program during an outage of 30 s that is shown", "outage of 30 s while output runs", "complete", 0},
	{"Ctrl-C to the prompt behind a flood at 1 Mbit/s", "Ctrl-C behind a flood, 1 Mbit/s", "prompt", 0.5},
	{"an idle session on the wire", "idle", "wire", 0.5},
	{"connecting, to the prompt", "connect to the prompt", "prompt", 0.5},
	{"50 MB of text", "50 MB of text, no limit", "rate", 0.5},
}

// summary returns a short table of all programs.
func (r *report) summary() string {
	var b strings.Builder
	r.programsTable(&b, "")
	for _, row := range summaryRows {
		records := r.of(row.scenario)
		r.programsRow(&b, func(program string) string { return summaryCell(records, program, row.metric, row.quantile) },
			row.text)
	}
	b.WriteByte('\n')
	r.origin(&b)
	return b.String()
}

// summaryCell returns one figure for people who do not know its metric.
func summaryCell(records []result.Record, program, metric string, quantile float64) string {
	r, ok := find(records, program, metric)
	v := r.Quantile(quantile)
	switch why, is := lost(records, program); {
	case (!ok || len(r.Values) == 0) && is:
		return why.Verdict
	case !ok || len(r.Values) == 0:
		return "-"
	case metric == "complete":
		return fmt.Sprintf("%.3g %%", 100*v)
	case r.Verdict == result.Never:
		return r.Verdict
	case r.Unit == "ms" && v >= 1000:
		return fmt.Sprintf("%.3g s", v/1000)
	default:
		return fmt.Sprintf("%.3g %s", v, r.Unit)
	}
}
