//go:build linux

// Package suite measures scenarios side by side, keeps every record as soon as it is there,
// and tells the verdicts.
package suite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/report"
	"github.com/quicterm/quicterm/bench/result"
	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/bench/scenario"
)

const (
	// SideBySide is how many places there are for sessions that are open at once: two cores
	// serve so many without being the limit.
	SideBySide = 20

	// longest is the longest that a scenario of a suite with a limit takes.
	longest = 50 * time.Second

	// quickSlack is by how much bounds of quick suites are wider: machines may be shared.
	quickSlack = 2
)

// A Suite measures scenarios.
type Suite struct {
	Group            *measure.Group
	Out              string        // file of the records
	Seed             uint64        // of the links' losses
	Quick            bool          // bounds are wider, and only those are checked that hold on any machine
	Strict           bool          // a missed bound is an error
	ComparesPrograms bool          // figures are for comparing: a busy machine spoils all of them
	Places           int64         // as SideBySide
	Limit            time.Duration // near which nothing is measured again, or 0

	bin        string // folder of qt and qtd
	commit     string
	machine    result.Machine
	slack      float64
	retryUntil time.Time

	mu      sync.Mutex
	records [][]result.Record // by scenario, in the order of the table
	file    *os.File
	lost    error // why the file does not have all records
}

// Run measures the scenarios, as many at once as have places: one that is to be alone, or has more sessions, takes all.
// It writes a table, and
// returns an error if records are lost or, if it is strict, a bound is missed.
func (s *Suite) Run(w io.Writer, scenarios []scenario.Scenario) error {
	if err := s.open(); err != nil {
		return err
	}
	defer s.file.Close()
	dir, err := os.MkdirTemp("", "qt")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s.records = make([][]result.Record, len(scenarios))
	s.Group.OnSignal(func() {
		os.RemoveAll(dir)
		fmt.Fprintln(os.Stderr)
		s.tell(w)
		fmt.Fprintln(os.Stderr, "bench: ended by a signal, everything is cleaned up")
	})
	defer s.Group.OnSignal(nil)
	if err := rig.Build(dir); err != nil {
		return err
	}
	if s.Limit > 0 {
		s.retryUntil = time.Now().Add(s.Limit - longest)
	}
	s.bin, s.commit, s.machine = dir, result.Commit(), result.ThisMachine()
	if s.Quick {
		s.slack = quickSlack
	}

	begun := time.Now()
	places := semaphore.NewWeighted(s.Places)
	var running sync.WaitGroup
	for i, sc := range scenarios {
		takes := min(int64(cmp.Or(sc.Places, sc.Clients())), s.Places)
		if sc.Alone {
			takes = s.Places
		}
		places.Acquire(context.Background(), takes) // in order, and never cancelled
		fmt.Fprintf(os.Stderr, "%d of %d, after %.0f s: %s, %s\n",
			i+1, len(scenarios), time.Since(begun).Seconds(), sc.Name, sc.Program.Name())
		running.Go(func() {
			defer places.Release(takes)
			s.keep(i, s.measure(sc))
		})
	}
	running.Wait()
	return s.tell(w)
}

// open opens the file of records.
func (s *Suite) open() error {
	err := os.MkdirAll(filepath.Dir(s.Out), 0o755)
	if err == nil {
		s.file, err = result.Open(s.Out)
	}
	if err != nil {
		return fmt.Errorf("results cannot be kept, --out names another file: %w", err)
	}
	return nil
}

// record returns a record of a scenario and a program without figures.
func (s *Suite) record(name, program string) result.Record {
	return result.Record{
		Time: time.Now().UTC().Truncate(time.Second), Commit: s.commit, Machine: s.machine,
		Scenario: name, Program: program, Seed: s.Seed,
	}
}

// keep keeps records. Those that cannot be written are in the table at least.
func (s *Suite) keep(i int, records []result.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records[i] = records
	for _, r := range records {
		if s.lost == nil {
			s.lost = result.Append(s.file, r)
		}
	}
}

// tell writes the table and the verdicts.
func (s *Suite) tell(w io.Writer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	records := slices.Concat(s.records...)
	if len(records) == 0 {
		return errors.New("nothing was measured")
	}
	fmt.Fprintf(w, "%s, commit %s, seed %d; %s\n", time.Now().UTC().Format(time.DateOnly), cmp.Or(s.commit, "unknown"),
		s.Seed, s.machine)
	io.WriteString(w, report.Table(records))
	missed, bounds, busy := 0, 0, 0
	stall, again := 0.0, make(map[string]bool)
	for _, r := range records {
		stall = max(stall, r.StallMS)
		if r.Repeats > 0 {
			again[r.Scenario+", "+r.Program] = true
		}
		switch {
		case r.Verdict == result.Missed, r.Verdict == result.Failed, r.Verdict == result.Never && r.Bound != "":
			missed++
			bounds++
		case r.Verdict == result.OK:
			bounds++
		case r.Verdict == result.Busy:
			busy++
		}
	}
	fmt.Fprintf(w, "The longest stall of this process was %.0f ms; scenarios measured again: %d.\n", stall, len(again))
	if busy > 0 {
		fmt.Fprintf(w, "Figures not to be believed because the machine was busy: %d.\n", busy)
	}
	if s.lost != nil {
		return fmt.Errorf("not all results are in %s: %w", s.Out, s.lost)
	}
	fmt.Fprintf(w, "Results are in %s. Bounds kept: %d of %d.\n", s.Out, bounds-missed, bounds)
	if s.Strict && missed > 0 {
		return fmt.Errorf("%d of %d bounds are missed", missed, bounds)
	}
	return nil
}

// List writes the scenarios and their bounds.
func (s *Suite) List(w io.Writer, scenarios []scenario.Scenario) error {
	var records []result.Record
	for _, sc := range scenarios {
		first := len(records)
		for _, b := range s.bounds(sc) {
			text := b.Text(sc.RTT())
			if i := slices.IndexFunc(records[first:], func(r result.Record) bool { return r.Metric == b.Metric }); i >= 0 {
				records[first+i].Bound += ", " + text
				continue
			}
			records = append(records, result.Record{Scenario: sc.Name, Program: sc.Program.Name(), Metric: b.Metric,
				Bound: text})
		}
		if len(records) == first {
			records = append(records, result.Record{Scenario: sc.Name, Program: sc.Program.Name()})
		}
	}
	_, err := io.WriteString(w, report.Table(records))
	return err
}
