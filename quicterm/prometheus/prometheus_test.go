package prometheus

import (
	"bytes"
	"testing"
)

// The text is that of the specification, byte by byte.
func TestWrite(t *testing.T) {
	s := New(
		Metric{Name: "a_total", Kind: "counter", Help: "counts\na"},
		Metric{Name: "b", Kind: "gauge", Help: `b\c`, Label: "state", Values: []string{`x"y`, `z`}},
		Metric{Name: "g", Kind: "gauge", Help: "g"},
		Metric{Name: "c_total", Kind: "counter", Help: "c", Label: "reason", Values: []string{"busy", "rate"}},
		Metric{Name: "d_seconds", Help: "d", Bounds: []float64{0.1, 1}},
	)
	s.Add("a_total", 3)
	s.Put(Series("b", "state", "z"), 1.5)
	s.Put("g", 1<<40)
	s.Add(`c_total{reason="rate"}`, 1)
	s.Add(`c_total{reason="of a peer"}`, 1)
	s.Put("other", 1)
	for _, v := range []float64{-1, 0.05, 0.1, 0.5, 7} {
		s.Observe("d_seconds", v)
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
g 1099511627776
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
