//go:build linux

package report

import (
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"
)

// CompareRule says this to people.
const (
	confidence  = 0.95 // that another measurement is in the interval
	fewValues   = 3    // with fewer, their spread says nothing,
	fewSpread   = 0.20 // and the median may be wrong by this share of it
	fewRuns     = 3    // with fewer runs, their spread says too little,
	runSpread   = 0.03 // and the interval of the median is wider by this share of it on each side,
	tailSpread  = 0.15 // and that of the tail by this: it consists of a few stalls of the machine
	significant = 0.10 // a loss of less than this share does not fail a comparison
)

// An estimate is a quantile, and the interval that it would be in if it were measured
// again.
type estimate struct{ value, low, high float64 }

// medianOf estimates the median from the values of one or more runs.
func medianOf(runs [][]float64) estimate {
	e, all := quantileOf(runs, 0.5)
	if len(all) < fewValues {
		e.low, e.high = e.value, e.value
		return e.widened(fewSpread)
	}
	e.low, e.high = max(e.low, all[0]), min(e.high, all[len(all)-1])
	return e.extended(runs, 0.5, runSpread)
}

// tailOf estimates a quantile far from the median, if there are values enough.
func tailOf(runs [][]float64, q float64) (e estimate, ok bool) {
	e, _ = quantileOf(runs, q)
	if math.IsInf(e.low, 0) || math.IsInf(e.high, 0) {
		return e, false
	}
	return e.extended(runs, q, tailSpread), true
}

// quantileOf returns a quantile of all values, with its confidence interval, which may be
// infinite, and the values in order.
func quantileOf(runs [][]float64, q float64) (estimate, []float64) {
	all := slices.Concat(runs...)
	slices.Sort(all)
	value, low, high := stats.QuantileCI(len(all), q, confidence).SampleCI(stats.Sample{Xs: all, Sorted: true})
	return estimate{value, low, high}, all
}

// extended returns the estimate with an interval that includes the quantile of another
// run. If there are few runs to learn from, it includes theirs, and is wider by a share.
func (e estimate) extended(runs [][]float64, q, share float64) estimate {
	var each stats.Sample
	for _, run := range runs {
		one, _ := quantileOf([][]float64{run}, q)
		each.Xs = append(each.Xs, one.value)
	}
	low, high := each.Bounds()
	n := float64(len(runs))
	if n >= fewRuns {
		// The prediction interval of a normal distribution.
		t := stats.InvCDF(stats.TDist{V: n - 1})(1 - (1-confidence)/2)
		by := t * each.StdDev() * math.Sqrt(1+1/n)
		low, high, share = each.Mean()-by, each.Mean()+by, 0
	}
	return estimate{e.value, min(e.low, low), max(e.high, high)}.widened(share)
}

// widened returns the estimate with an interval that is wider by a share of the value.
func (e estimate) widened(share float64) estimate {
	by := share * math.Abs(e.value)
	return estimate{e.value, e.low - by, e.high + by}
}

// differs reports whether two estimates differ by more than the noise.
func (e estimate) differs(other estimate) bool {
	return e.high < other.low || other.high < e.low
}
