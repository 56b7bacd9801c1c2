package metrics

import (
	"bytes"
	"testing"
)

// The text is that of the specification, byte by byte.
func TestWrite(t *testing.T) {
	var s Set
	s.Counter("a_total", "counts\na").Add(3)
	states := s.Gauges("b", `b\c`, "state", `x"y`, `z`)
	states.Of("z").Set(1.5)
	s.Gauge("g", "g").Set(1 << 40)
	refused := s.Counters("c_total", "c", "reason", "busy", "rate")
	refused.Of("rate").Add(1)
	h := s.Histogram("d_seconds", "d", 0.1, 1)
	for _, v := range []float64{-1, 0.05, 0.1, 0.5, 7} {
		h.Observe(v)
	}
	const want = `# HELP a_total counts\na
# TYPE a_total counter
a_total 3
# HELP b b\\c
# TYPE b gauge
b{state="x\"y"} 0
b{state="z"} 1.5
# HELP g g
# TYPE g gauge
g 1.099511627776e+12
# HELP c_total c
# TYPE c_total counter
c_total{reason="busy"} 0
c_total{reason="rate"} 1
# HELP d_seconds d
# TYPE d_seconds histogram
d_seconds_bucket{le="0.1"} 3
d_seconds_bucket{le="1"} 4
d_seconds_bucket{le="+Inf"} 5
d_seconds_sum 7.65
d_seconds_count 5
`
	var b bytes.Buffer
	if err := s.Write(&b); err != nil || b.String() != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, b.String(), want)
	}
}
