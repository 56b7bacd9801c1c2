// Package prometheus counts events, writes the counts in the text format of Prometheus, version 0.0.4, and serves them
// over HTTP. It does not know what it counts. Its methods are safe for concurrent use.
//
// A label has only the values that are named when its metric is made: no peer can make series.
//
// Prometheus' own library would add 430 KiB of private memory to each process that holds a
// session, which is the same program as the daemon, and 5 MB to the program.
package prometheus

import (
	"bytes"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// ContentType is the type of what [Set.Write] writes.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// A Metric is what Prometheus calls all series with one name: one for each value of the label, or one without.
type Metric struct {
	Name, Kind, Help string // the kind is "counter" or "gauge", unless there are bounds

	Label  string
	Values []string // of the label

	// Bounds make the metric a histogram, with buckets up to each of the bounds, which ascend, and one for what is above.
	Bounds []float64
}

// A Set is metrics that are written together, in their order.
type Set struct {
	metrics []Metric

	mu     sync.Mutex
	values map[string]float64 // of series, by their text
}

// New returns a set of metrics, all of which are 0.
func New(metrics ...Metric) *Set {
	s := &Set{metrics: metrics, values: make(map[string]float64)}
	for _, m := range metrics {
		for _, series := range m.series() {
			s.values[series] = 0
		}
	}
	return s
}

// series returns the texts of the series of a metric.
func (m *Metric) series() (all []string) {
	switch {
	case m.Bounds != nil:
		for i := range len(m.Bounds) + 1 {
			all = append(all, m.bucket(i))
		}
		return append(all, m.Name+"_sum", m.Name+"_count")
	case m.Label == "":
		return []string{m.Name}
	}
	for _, value := range m.Values {
		all = append(all, Series(m.Name, m.Label, value))
	}
	return all
}

// bucket returns the text of the series of a bucket.
func (m *Metric) bucket(i int) string {
	bound := "+Inf"
	if i < len(m.Bounds) {
		bound = number(m.Bounds[i])
	}
	return Series(m.Name+"_bucket", "le", bound)
}

// Series returns the text of a series with a label.
func Series(name, label, value string) string {
	return name + "{" + label + `="` + quote.Replace(value) + `"}`
}

// Add adds to the number of a series of the set. Others are left out.
func (s *Set) Add(series string, n float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setLocked(series, s.values[series]+n)
}

// Put sets the number of a series of the set. Others are left out.
func (s *Set) Put(series string, n float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setLocked(series, n)
}

func (s *Set) setLocked(series string, n float64) {
	if _, known := s.values[series]; known {
		s.values[series] = n
	}
}

// Observe counts an observation in a histogram of the set. A negative one counts as 0: the sum never falls.
func (s *Set) Observe(name string, v float64) {
	i := slices.IndexFunc(s.metrics, func(m Metric) bool { return m.Name == name })
	m := &s.metrics[i]
	v = max(v, 0)
	s.mu.Lock()
	defer s.mu.Unlock()
	first, _ := slices.BinarySearch(m.Bounds, v)
	for i := first; i <= len(m.Bounds); i++ { // each bucket has those of the buckets before it
		s.values[m.bucket(i)]++
	}
	s.values[name+"_sum"] += v
	s.values[name+"_count"]++
}

// Write writes all metrics.
func (s *Set) Write(w io.Writer) error {
	var b bytes.Buffer
	s.mu.Lock()
	for _, m := range s.metrics {
		kind := m.Kind
		if m.Bounds != nil {
			kind = "histogram"
		}
		b.WriteString("# HELP " + m.Name + " " + escape.Replace(m.Help) + "\n# TYPE " + m.Name + " " + kind + "\n")
		for _, series := range m.series() {
			b.WriteString(series + " " + number(s.values[series]) + "\n")
		}
	}
	s.mu.Unlock()
	_, err := b.WriteTo(w)
	return err
}

// escape is for help texts, and quote for values of labels.
var (
	escape = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	quote  = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// number returns a number as text, a whole one with all its digits.
func number(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
