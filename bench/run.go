//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/semaphore"

	"github.com/quicterm/quicterm/bench/result"
	"github.com/quicterm/quicterm/bench/rig"
)

func runCommand(running *measurements) *cobra.Command {
	p := newProduction(running)
	c := &cobra.Command{
		Use:   "run",
		Short: "Play all scenarios with quicterm, and print one table",
		Long: `Play all scenarios with quicterm: the released programs on terminals, read through a
terminal emulator, over emulated links on the loopback interface. First come the Go
benchmarks of what is computed most, and the emulator itself, compared with what it is
asked to do.

Takes less than five minutes, or with --quick one. What missed its bound while this
process could not run for 20 ms is measured again, at most twice and only if there is time,
and else is busy: not to be believed. Every figure goes to a file as soon as it is measured.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var turns []turn
			for _, s := range p.chosen() {
				if s.nat {
					continue
				}
				turns = append(turns, turn{s, quictermProgram{}, s.bounds})
			}
			if p.list {
				return p.print(c.OutOrStdout(), turns)
			}
			before := []prelude{{"emulator", func() []result.Record { return p.checkEmulator("proxy", proxyTestLink) }}}
			if !p.quick && p.only == "" {
				before = slices.Insert(before, 0, prelude{"micro benchmarks", p.microBenchmarks})
			}
			if p.limit = runLimit; p.quick {
				p.limit = quickLimit
			}
			return p.perform(c.OutOrStdout(), newProxyStage, before, turns, atOnce)
		},
	}
	p.flags(c, "latest")
	c.Flags().BoolVar(&p.quick, "quick", false, "play few scenarios, with bounds that a busy machine keeps too")
	return c
}

const (
	// atOnce is how many sessions are open at the same time: as many as two cores serve
	// without being the limit.
	atOnce = 20

	runLimit   = 5 * time.Minute
	quickLimit = time.Minute

	// longestPlay is the longest that any scenario takes whose work comes to an end.
	longestPlay = 50 * time.Second

	// quickSlack is by how much bounds are wider where machines are shared.
	quickSlack = 2
)

// A production plays scenarios, keeps what is measured, and tells of it.
type production struct {
	player
	only, out   string
	quick, list bool
	limit       time.Duration // that is not to be exceeded by playing again, or 0

	mu      sync.Mutex
	records [][]result.Record // by turn, in the order of the table
	file    *os.File
	lost    error // why results are not kept any more
}

func newProduction(running *measurements) *production {
	return &production{player: player{all: running}}
}

// flags are those of all commands that play scenarios. Out names the results.
func (p *production) flags(c *cobra.Command, out string) {
	c.Flags().StringVar(&p.only, "only", "", "play only scenarios that have this `text` in their names")
	c.Flags().StringVar(&p.out, "out", "bench/results/"+out+".jsonl", "append results to this `file`")
	c.Flags().BoolVar(&p.list, "list", false, "only list the scenarios and their bounds")
	c.Flags().Uint64Var(&p.seed, "seed", 1, "what the losses of links are made from")
}

// chosen returns the scenarios that are to be played. Somebody who is quick types half as
// long, where nothing happens.
func (p *production) chosen() []scenario {
	all := slices.DeleteFunc(slices.Clone(scenarios), func(s scenario) bool {
		return !strings.Contains(s.name, p.only) || p.quick && !s.quick
	})
	for i, s := range all {
		if k, ok := s.work.(keystrokes); ok && p.quick && len(s.events) == 0 {
			k.keys /= 2
			all[i].work = k
		}
	}
	return all
}

// A turn is a program that is to do a scenario, within bounds.
type turn struct {
	scenario scenario
	program  program
	bounds   []bound
}

// A prelude is measured before the scenarios.
type prelude struct {
	name    string
	measure func() []result.Record
}

// print lists turns.
func (p *production) print(w io.Writer, turns []turn) error {
	var records []result.Record
	for _, t := range turns {
		for _, b := range t.bounds {
			r := result.Record{Scenario: t.scenario.name, Program: t.program.name(), Metric: b.metric, Bound: b.text(t.scenario.rtt())}
			if n := len(records); n > 0 && records[n-1].Scenario == r.Scenario && records[n-1].Program == r.Program && records[n-1].Metric == r.Metric {
				records[n-1].Bound += ", " + r.Bound
				continue
			}
			records = append(records, r)
		}
		if len(t.bounds) == 0 {
			records = append(records, result.Record{Scenario: t.scenario.name, Program: t.program.name()})
		}
	}
	_, err := io.WriteString(w, table(records, screenWidth(w)))
	return err
}

// perform measures preludes, one after the other, and then has the turns played, as many
// at once as have room: their sessions share it, and one that is for itself, or has more,
// takes it all. It prints a table, and returns an error if a bound was not kept.
func (p *production) perform(w io.Writer, newStage func(m *measurement, seed uint64) stage, before []prelude, turns []turn, room int64) error {
	if len(turns) == 0 {
		return fmt.Errorf("no scenario has %q in its name: --list shows all", p.only)
	}
	if err := p.open(); err != nil {
		return err
	}
	defer p.file.Close()
	dir, err := os.MkdirTemp("", "qt")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	p.all.removeOnSignal(dir)
	if err := rig.Build(dir); err != nil {
		return err
	}
	if p.limit > 0 {
		p.until = time.Now().Add(p.limit - longestPlay)
	}
	p.bin, p.commit, p.machine = dir, result.Commit(), result.ThisMachine()
	if p.quick {
		p.slack = quickSlack
	}
	p.records = make([][]result.Record, len(before)+len(turns))
	p.all.onSignal(func() {
		fmt.Fprintln(os.Stderr)
		p.tell(w)
		fmt.Fprintln(os.Stderr, "bench: broken off, everything is cleaned up")
	})
	defer p.all.onSignal(nil)

	bar, done := newBar(len(p.records))
	defer done()
	for i, b := range before {
		bar.Describe(b.name)
		p.keep(i, b.measure())
		bar.Add(1)
	}
	places := semaphore.NewWeighted(room)
	var playing sync.WaitGroup
	for i, t := range turns {
		takes := min(int64(t.scenario.clients()), room)
		if t.scenario.alone {
			takes = room
		}
		places.Acquire(context.Background(), takes) // in turn, and never cancelled
		bar.Describe(t.scenario.name + ", " + t.program.name())
		playing.Go(func() {
			defer places.Release(takes)
			p.keep(len(before)+i, p.play(newStage, t.program, t.scenario, t.bounds))
			bar.Add(1)
		})
	}
	playing.Wait()
	done()
	err = p.tell(w)
	if _, _, failed := drawResults(os.Stderr, p.out); failed != nil {
		err = errors.Join(err, fmt.Errorf("no plots: %w", failed))
	}
	return err
}

// open opens the file of results.
func (p *production) open() error {
	err := os.MkdirAll(filepath.Dir(p.out), 0o755)
	if err == nil {
		p.file, err = result.Open(p.out)
	}
	if err != nil {
		return fmt.Errorf("results cannot be kept, --out names another file: %w", err)
	}
	return nil
}

// keep keeps what was measured. If it cannot be written, it is in the table at least.
func (p *production) keep(turn int, records []result.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.records[turn] = records
	for _, r := range records {
		if p.lost == nil {
			p.lost = result.Append(p.file, r)
		}
	}
}

// tell prints the table of what was measured, and returns an error if something is not
// as it should be.
func (p *production) tell(w io.Writer) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	records := slices.Concat(p.records...)
	if len(records) == 0 {
		return errors.New("nothing was measured")
	}
	fmt.Fprintf(w, "%s, commit %s, seed %d; %s\n", p.now().Format("2006-01-02"), cmp.Or(p.commit, "unknown"), p.seed, machineText(p.machine))
	io.WriteString(w, table(records, screenWidth(w)))
	wrong, bounds, busy := 0, 0, 0
	stall, again := 0.0, make(map[string]bool)
	for _, r := range records {
		stall = max(stall, r.StallMS)
		if r.Repeats > 0 {
			again[r.Scenario+", "+r.Program] = true
		}
		switch {
		case r.Verdict == result.Missed, r.Verdict == result.Failed, r.Verdict == result.Never && r.Bound != "":
			wrong++
			bounds++
		case r.Verdict == result.OK:
			bounds++
		case r.Verdict == result.Busy:
			busy++
		}
	}
	fmt.Fprintf(w, "A sleeper was kept waiting for %.0f ms at most; scenarios played again: %d.\n", stall, len(again))
	if busy > 0 {
		fmt.Fprintf(w, "The machine was too busy for %d figures to be believed.\n", busy)
	}
	if p.lost != nil {
		return fmt.Errorf("results are not all in %s: %w", p.out, p.lost)
	}
	fmt.Fprintf(w, "Results are in %s.\n", p.out)
	if wrong > 0 {
		return fmt.Errorf("%d of %d are not as they should be", wrong, bounds)
	}
	return nil
}
