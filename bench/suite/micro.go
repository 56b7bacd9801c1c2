//go:build linux

package suite

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/perf/benchfmt"

	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/program"
	"github.com/quicterm/quicterm/bench/result"
	"github.com/quicterm/quicterm/bench/scenario"
)

// microPackages have Go benchmarks of what is computed most.
var microPackages = []string{"buffer", "quicterm/session", "quicterm/session/driver"}

const (
	module     = "github.com/quicterm/quicterm/"
	microTime  = 100 * time.Millisecond // of each benchmark
	microCount = 4                      // times
)

// ringShare bounds the ring's share of the speed of copying and computing a CRC alone.
var ringShare = scenario.Bound{Metric: "rate", Quantile: 0.5, Plus: 0.6, AtLeast: true}

// MicroCheck returns a check that runs the Go benchmarks.
func (s *Suite) MicroCheck() Check { return Check{"micro benchmarks", s.microBenchmarks} }

func (s *Suite) microBenchmarks() []result.Record {
	var records []result.Record
	err := s.Group.Run("micro benchmarks", s.bin, func(t *measure.T) {
		args := []string{"test", "-run", "^$", "-bench", ".", "-benchtime", microTime.String(), "-count", fmt.Sprint(microCount)}
		for _, name := range microPackages {
			args = append(args, module+name)
		}
		// The group of processes ends with the measurement.
		cmd := exec.Command("go", args...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		var out, problems bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &problems
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v: %s%s", err, problems.Bytes(), out.Bytes())
		}
		var err error
		if records, err = parseMicro(&out); err != nil {
			t.Fatal(err)
		}
	})
	if err != nil {
		records = []result.Record{{Scenario: "micro benchmarks", Metric: "complete", Verdict: result.Failed, Why: oneLine(err)}}
	}
	common := s.record("", program.Quicterm{}.Name())
	for i := range records {
		records[i].Time, records[i].Commit, records[i].Machine, records[i].Program = common.Time, common.Commit, common.Machine, common.Program
	}
	return records
}

// parseMicro returns a record of each benchmark in the output of go test: its speed, or if
// it has none its time.
func parseMicro(from io.Reader) ([]result.Record, error) {
	var records []result.Record
	reader := benchfmt.NewReader(from, "go test")
	for reader.Scan() {
		switch r := reader.Result().(type) {
		case *benchfmt.SyntaxError:
			return nil, r
		case *benchfmt.Result:
			name := strings.TrimPrefix(r.GetConfig("pkg"), module) + " " + string(r.Name.Full())
			if at := strings.LastIndexByte(name, '-'); at > 0 {
				name = name[:at] // how many cores there are
			}
			next := result.Record{Scenario: name, Metric: "time", Unit: "us"}
			value, _ := r.Value("sec/op")
			value *= 1e6
			if speed, ok := r.Value("B/s"); ok {
				next.Metric, next.Unit, value = "rate", "MB/s", speed/1e6
			}
			at := slices.IndexFunc(records, func(r result.Record) bool { return r.Scenario == name })
			if at < 0 {
				at = len(records)
				records = append(records, next)
			}
			records[at].Values = append(records[at].Values, value)
		}
	}
	if err := reader.Err(); err != nil {
		return nil, err
	}
	if len(records) == 0 {
		return nil, fmt.Errorf("go test has run no benchmarks")
	}
	return besideBare(records), nil
}

// besideBare replaces the records that the ring is compared with by a ratio: of the best of
// both, because other processes compute meanwhile.
func besideBare(records []result.Record) []result.Record {
	var kept []result.Record
	for _, r := range records {
		ring := strings.Replace(r.Scenario, "/bare/", "/append/", 1)
		if ring == r.Scenario {
			kept = append(kept, r)
			continue
		}
		at := slices.IndexFunc(records, func(other result.Record) bool { return other.Scenario == ring })
		if at < 0 || !strings.HasSuffix(ring, "/4096") {
			continue
		}
		ratio := result.Record{
			Scenario: ring + " of bare", Metric: "rate", Unit: "x", Portable: true,
			Values: []float64{records[at].Quantile(1) / r.Quantile(1)},
		}
		ratio.Bound, ratio.Verdict = scenario.Verdict(ratio, []scenario.Bound{ringShare}, 0, 1, nil)
		kept = append(kept, ratio)
	}
	return kept
}
