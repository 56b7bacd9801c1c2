// Package metrics counts events and writes the counts in the text format of Prometheus,
// version 0.0.4. Its methods are safe for concurrent use.
//
// A label has only the values that are named when its metric is made: no peer can make series.
//
// Prometheus' own library would add 430 KiB of private memory to each process that holds a
// session, which is the same program as the daemon, and 5 MB to the program.
package metrics

import (
	"bytes"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// ContentType is the type of what [Set.Write] writes.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// A Set is metrics that are written together, in the order in which they were made. The zero
// value is empty.
type Set struct {
	mu       sync.Mutex
	families []family
}

// A family is what Prometheus calls all series with one name.
type family struct {
	name, help, kind string
	series           []series
}

// A series writes its lines.
type series interface {
	write(b *bytes.Buffer, name string)
}

func (s *Set) add(name, help, kind string, all ...series) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.families = append(s.families, family{name, help, kind, all})
}

// A Value is one number: it is added to, if it counts from the start of the process on, or it is set.
type Value struct {
	labels string
	counts bool
	bits   atomic.Uint64 // of a float64, unless it counts
}

// Add adds n to what counts.
func (v *Value) Add(n uint64) { v.bits.Add(n) }

// Set sets what does not count.
func (v *Value) Set(n float64) { v.bits.Store(math.Float64bits(n)) }

func (v *Value) write(b *bytes.Buffer, name string) {
	if v.counts {
		line(b, name, v.labels, strconv.FormatUint(v.bits.Load(), 10))
	} else {
		line(b, name, v.labels, number(math.Float64frombits(v.bits.Load())))
	}
}

// Counter adds a metric that counts.
func (s *Set) Counter(name, help string) *Value {
	v := &Value{counts: true}
	s.add(name, help, "counter", v)
	return v
}

// Gauge adds a metric that is set.
func (s *Set) Gauge(name, help string) *Value {
	v := new(Value)
	s.add(name, help, "gauge", v)
	return v
}

// Values are one for each value of a label.
type Values struct{ of map[string]*Value }

// Of returns the one of a label's value, which must be one of those that are known.
func (v *Values) Of(label string) *Value { return v.of[label] }

func (s *Set) values(name, help, kind string, counts bool, label string, known []string) *Values {
	v := &Values{make(map[string]*Value)}
	var all []series
	for _, value := range known {
		v.of[value] = &Value{labels: pair(label, value), counts: counts}
		all = append(all, v.of[value])
	}
	s.add(name, help, kind, all...)
	return v
}

// Counters is Counter for each value of a label.
func (s *Set) Counters(name, help, label string, values ...string) *Values {
	return s.values(name, help, "counter", true, label, values)
}

// Gauges is Gauge for each value of a label.
func (s *Set) Gauges(name, help, label string, values ...string) *Values {
	return s.values(name, help, "gauge", false, label, values)
}

// Totals is Gauges for numbers that only grow, and that something else counts.
func (s *Set) Totals(name, help, label string, values ...string) *Values {
	return s.values(name, help, "counter", false, label, values)
}

// A Histogram counts observations by size.
type Histogram struct {
	bounds []float64

	mu     sync.Mutex
	counts []uint64 // of those up to each bound and above the one before it; the last is above all
	sum    float64
}

// Histogram adds a histogram with buckets up to each of the bounds, which ascend, and one for
// what is above them.
func (s *Set) Histogram(name, help string, bounds ...float64) *Histogram {
	h := &Histogram{bounds: bounds, counts: make([]uint64, len(bounds)+1)}
	s.add(name, help, "histogram", h)
	return h
}

// Observe counts an observation. A negative one counts as 0: the sum never falls.
func (h *Histogram) Observe(v float64) {
	v = max(v, 0)
	i, _ := slices.BinarySearch(h.bounds, v)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts[i]++
	h.sum += v
}

func (h *Histogram) write(b *bytes.Buffer, name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var total uint64
	for i, n := range h.counts {
		total += n
		bound := "+Inf"
		if i < len(h.bounds) {
			bound = number(h.bounds[i])
		}
		line(b, name+"_bucket", pair("le", bound), strconv.FormatUint(total, 10))
	}
	line(b, name+"_sum", "", number(h.sum))
	line(b, name+"_count", "", strconv.FormatUint(total, 10))
}

// Write writes all metrics.
func (s *Set) Write(w io.Writer) error {
	var b bytes.Buffer
	s.mu.Lock()
	for _, f := range s.families {
		b.WriteString("# HELP " + f.name + " " + escape.Replace(f.help) + "\n")
		b.WriteString("# TYPE " + f.name + " " + f.kind + "\n")
		for _, one := range f.series {
			one.write(&b, f.name)
		}
	}
	s.mu.Unlock()
	_, err := b.WriteTo(w)
	return err
}

func line(b *bytes.Buffer, name, labels, value string) {
	b.WriteString(name)
	if labels != "" {
		b.WriteString("{" + labels + "}")
	}
	b.WriteString(" " + value + "\n")
}

// escape is for help texts, and quote for values of labels.
var (
	escape = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	quote  = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

func pair(label, value string) string { return label + `="` + quote.Replace(value) + `"` }

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
