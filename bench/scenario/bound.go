//go:build linux

package scenario

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/result"
)

// A Bound is the most, or the least, that a quantile of a metric may be: round trips of the
// link, or a multiple of a rival's, plus a constant in the metric's unit.
type Bound struct {
	Metric   string
	Quantile float64 // 0.5 for the median, 1 for the worst, 0 for the least
	RTTs     float64 // the metric is in ms
	Plus     float64
	AtLeast  bool

	Rival string  // whose quantile of the metric counts, or ""
	Times float64 // how often
}

// allOutput is that all output comes, once and in order.
var allOutput = Bound{Metric: "complete", Plus: 1, AtLeast: true}

// Verdict returns the bounds of a record as text, and what came of them. With slack, they
// are wider by a factor. Rivals are the records of the other programs.
func Verdict(
	r result.Record, bounds []Bound, rtt time.Duration, slack float64, rivals []result.Record,
) (text, verdict string) {
	var texts []string
	for _, b := range bounds {
		if b.Metric != r.Metric {
			continue
		}
		b = b.widened(slack)
		texts = append(texts, b.Text(rtt))
		limit, known := b.limit(rtt, rivals)
		if !known {
			continue
		}
		if verdict == result.Free {
			verdict = result.OK
		}
		if !b.kept(r.Quantile(b.Quantile), limit) {
			verdict = result.Missed
		}
	}
	return strings.Join(texts, ", "), verdict
}

// widened returns a bound that is easier to keep by a factor. Output must be complete on
// any machine.
func (b Bound) widened(factor float64) Bound {
	if b.Metric == "complete" || b.Metric == "whole" {
		return b
	}
	if b.AtLeast {
		factor = 1 / factor
	}
	b.RTTs *= factor
	b.Times *= factor
	b.Plus *= factor
	return b
}

// limit returns the value of the bound, if the rival was measured.
func (b Bound) limit(rtt time.Duration, rivals []result.Record) (limit float64, known bool) {
	limit = b.RTTs*measure.Milliseconds(rtt) + b.Plus
	if b.Rival == "" {
		return limit, true
	}
	i := slices.IndexFunc(rivals, func(r result.Record) bool { return r.Program == b.Rival && r.Metric == b.Metric })
	if i < 0 || len(rivals[i].Values) == 0 {
		return 0, false
	}
	return limit + b.Times*rivals[i].Quantile(b.Quantile), true
}

// kept reports whether a value keeps the limit. NaN, of no values, does not.
func (b Bound) kept(value, limit float64) bool {
	if b.AtLeast {
		return value >= limit
	}
	return value <= limit
}

// Text returns the bound as text, such as "p99 200".
func (b Bound) Text(rtt time.Duration) string {
	limit := number(b.RTTs*measure.Milliseconds(rtt) + b.Plus)
	if b.Rival != "" {
		times := number(b.Times) + " x " + b.Rival
		if limit == "0" {
			limit = times
		} else {
			limit = times + " + " + limit
		}
	}
	if b.AtLeast {
		limit = ">= " + limit
	}
	return quantileName(b.Quantile) + " " + limit
}

// number returns a number with at most three decimals and without an exponent.
func number(v float64) string {
	const digits = 1e3
	return strconv.FormatFloat(math.Round(v*digits)/digits, 'f', -1, 64)
}

func quantileName(q float64) string {
	switch q {
	case 0:
		return "min"
	case 1:
		return "max"
	default:
		return fmt.Sprintf("p%.3g", 100*q)
	}
}
