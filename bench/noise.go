//go:build linux

package main

import (
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
)

// What is said of the noise in compareRule is said with these.
const (
	confidence  = 0.95 // that the median of all that could be measured is in the interval
	fewValues   = 3    // with fewer, their spread says nothing,
	fewSpread   = 0.20 // and the median may be off by this share of it
	fewRuns     = 3    // with fewer runs, their spread says too little,
	runSpread   = 0.03 // and the interval is wider by this share on each side
	significant = 0.10 // a loss of less than this share does not fail a comparison
)

// An estimate is a median, and the interval that it would be in if it were measured
// again.
type estimate struct{ median, low, high float64 }

// estimateOf returns an estimate from the values of one or more runs.
func estimateOf(runs [][]float64) estimate {
	all := slices.Concat(runs...)
	slices.Sort(all)
	s := benchmath.AssumeNothing.Summary(benchmath.NewSample(all, &benchmath.DefaultThresholds), confidence)
	e := estimate{s.Center, s.Lo, s.Hi}
	if len(all) < fewValues {
		return e.spread(e.median, e.median).widened(fewSpread)
	}
	if math.IsInf(e.low, 0) || math.IsInf(e.high, 0) {
		e = e.spread(all[0], all[len(all)-1])
	}
	for _, run := range runs {
		m := benchmath.AssumeNothing.Summary(benchmath.NewSample(slices.Clone(run), &benchmath.DefaultThresholds), confidence).Center
		e = e.spread(min(e.low, m), max(e.high, m))
	}
	if len(runs) < fewRuns {
		e = e.widened(runSpread)
	}
	return e
}

// spread returns the estimate with another interval.
func (e estimate) spread(low, high float64) estimate { return estimate{e.median, low, high} }

// widened returns the estimate with an interval that is wider by a share of the median.
func (e estimate) widened(share float64) estimate {
	by := share * math.Abs(e.median)
	return e.spread(e.low-by, e.high+by)
}

// differs says whether two estimates differ by more than the noise.
func (e estimate) differs(other estimate) bool {
	return e.high < other.low || other.high < e.low
}
