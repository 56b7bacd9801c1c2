// Package result is the records of measurements: lines of JSON in a file that grows by one
// record at a time, so that an interrupted run leaves what it had.
//
// It promises that what Append wrote is read back to six digits, and that Read names the
// line of a file that is not a record. It does not know what the figures mean.
package result

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"time"
)

// maxValues is how many values a record has at most: enough for the 99.9th
// percentile, and a line that is still read at once.
const maxValues = 10_000

const (
	maxLine = 1 << 20   // bytes; values and times of 10,000 samples, at 13 bytes each, are a quarter of it
	maxFile = 256 << 20 // bytes; a run of all scenarios is less than a hundredth of it
)

// Verdicts of a metric.
const (
	OK     = "ok"     // the bound was kept
	Missed = "missed" // it was not
	Never  = "never"  // the program cannot do the scenario
	Failed = "failed" // the measurement did not come to an end
	Busy   = "busy"   // the machine was too busy for the figures to be believed
	Free   = ""       // there is no bound
)

var verdicts = []string{OK, Missed, Never, Failed, Busy, Free}

// A Record is what was measured of one metric of one program in one scenario.
type Record struct {
	Time    time.Time `json:"time"`
	Commit  string    `json:"commit,omitempty"` // of the checkout
	Machine Machine   `json:"machine"`

	Scenario string  `json:"scenario"`
	Program  string  `json:"program"`
	Metric   string  `json:"metric"`
	Unit     string  `json:"unit,omitempty"`
	Loss     float64 `json:"loss,omitempty"`   // of the link, each way, from 0 to 1
	RTT      float64 `json:"rtt_ms,omitempty"` // of the link, milliseconds

	Values []float64 `json:"values,omitempty"` // every sample as it was measured, at most maxValues
	At     []float64 `json:"at,omitempty"`     // when each was begun, in seconds since the work began; or nothing
	Events []Event   `json:"events,omitempty"` // what happened meanwhile, to the first client
	// Stagger is by how many seconds events come later for each next client.
	Stagger float64 `json:"stagger_s,omitempty"`

	// Growth is what grows from a scenario to the next, and Size how far it has in this one.
	Growth string  `json:"growth,omitempty"`
	Size   float64 `json:"size,omitempty"`

	Bound    string  `json:"bound,omitempty"`
	Verdict  string  `json:"verdict,omitempty"`
	Why      string  `json:"why,omitempty"`      // of Never and Failed, or what else there is to say
	Portable bool    `json:"portable,omitempty"` // comparable between machines, as a ratio is
	StallMS  float64 `json:"stall_ms,omitempty"` // the longest time that the machine kept a sleeper waiting
	Repeats  int     `json:"repeats,omitempty"`  // how often it was measured before, on a busy machine
	Seed     uint64  `json:"seed"`
}

// An Event is what happened to a session.
type Event struct {
	At   float64 `json:"at"` // seconds since the work began
	What string  `json:"what"`
}

// Quantile returns the smallest value that at least a share q of the values do not
// exceed, or NaN if there are none.
func (r Record) Quantile(q float64) float64 {
	if len(r.Values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(r.Values))
	// The share of a rank may be a rounding error below q.
	rank := int(math.Ceil(q*float64(len(sorted)) - 1e-9))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Append writes a record as a line, in one call of Write.
func Append(w io.Writer, r Record) error {
	if err := r.check(); err != nil {
		return fmt.Errorf("record of %s, %s, %s: %w", r.Scenario, r.Program, r.Metric, err)
	}
	r.Values, r.At = rounded(r.Values), rounded(r.At)
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("record of %s, %s, %s: %w", r.Scenario, r.Program, r.Metric, err)
	}
	if _, err := w.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write a result: %w", err)
	}
	return nil
}

// rounded returns values of six significant digits, which makes lines short.
func rounded(values []float64) []float64 {
	short := slices.Clone(values)
	for i, v := range short {
		short[i], _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64)
	}
	return short
}

func (r *Record) check() error {
	switch {
	case r.Scenario == "" || r.Program == "" || r.Metric == "":
		return errors.New("a record has a scenario, a program and a metric")
	case len(r.Values) > maxValues:
		return fmt.Errorf("%d values, at most %d are kept", len(r.Values), maxValues)
	case len(r.At) > 0 && len(r.At) != len(r.Values):
		return fmt.Errorf("%d values with %d times", len(r.Values), len(r.At))
	case !slices.Contains(verdicts, r.Verdict):
		return fmt.Errorf("unknown verdict %q", r.Verdict)
	}
	return nil
}

// ErrHalfLine is wrapped by the error of Read if the file ends within a line, because the
// disk was full or the writer was killed. All records before that are returned too.
var ErrHalfLine = errors.New("the file ends within a line, which is left out")

// Read returns the records of a file.
func Read(path string) ([]Record, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	records, _, err := read(f)
	if err != nil {
		return records, fmt.Errorf("%s:%w", path, err)
	}
	return records, nil
}

// Open returns a file to append records to. Half a line at its end, which would spoil
// the next one, is cut off.
func Open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	_, whole, err := read(f)
	if errors.Is(err, ErrHalfLine) {
		err = f.Truncate(whole)
	} else if err != nil {
		err = fmt.Errorf("%s:%w", path, err)
	}
	if err == nil {
		_, err = f.Seek(whole, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// read returns the records of a file, and how many bytes they take. Errors begin with
// the number of the line.
func read(from io.Reader) (records []Record, whole int64, err error) {
	in := bufio.NewReaderSize(from, maxLine)
	for number := 1; ; number++ {
		line, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			return records, whole, nil
		case errors.Is(err, io.EOF):
			return records, whole, fmt.Errorf("%d: %w", number, ErrHalfLine)
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, whole, fmt.Errorf("%d: the line has more than %d bytes, as no results have", number, maxLine)
		case err != nil:
			return nil, whole, fmt.Errorf("%d: %w", number, err)
		}
		var r Record
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, whole, fmt.Errorf("%d: not a record: %w", number, err)
		}
		if err := r.check(); err != nil {
			return nil, whole, fmt.Errorf("%d: %w", number, err)
		}
		records = append(records, r)
		whole += int64(len(line))
		if whole > maxFile {
			return nil, whole, fmt.Errorf("%d: the file has more than %d bytes, as no results have", number, maxFile)
		}
	}
}
