//go:build linux || darwin

package main

import (
	"bufio"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "github.com/quicterm/quicterm/bench/bubble"
)

var (
	seedFlag    = flag.Uint64("seed", 0, "play the world of this seed only")
	firstFlag   = flag.Uint64("first", 1, "with -for: the first seed")
	forFlag     = flag.Duration("for", 0, "play worlds for this long")
	traceFlag   = flag.Bool("trace", false, "tell the story")
	withoutFlag = flag.String("without", "", "with -seed: numbers of faults that are left out, with commas")
	planFlag    = flag.Bool("plan", false, "with -seed: print what will happen, and play nothing")
)

// TestSimulation plays the worlds of testdata/seeds, each of which has shown a fault of the product, and some others. For what
// its flags are for, see main.go.
func TestSimulation(t *testing.T) {
	var story func(string)
	if *traceFlag {
		story = func(line string) { fmt.Println(line) }
	}
	var all totals
	defer func() { all.log(t) }()
	if *seedFlag != 0 {
		all.add(simulate(t, *seedFlag, story))
		return
	}
	if *forFlag == 0 {
		seeds := keptSeeds(t)
		if testing.Short() {
			seeds = seeds[:1]
		}
		for _, seed := range seeds {
			all.add(simulate(t, seed, story))
		}
		return
	}
	// A busy machine plays few worlds in the time: then it has more time for what must be reached.
	missing := demanded(*forFlag)
	for begun, seed := time.Now(), *firstFlag; ; seed++ {
		played := time.Since(begun)
		missing = all.missing(missing)
		if played >= *forFlag && (len(missing) == 0 || played >= 3**forFlag) {
			break
		}
		all.add(simulate(t, seed, story))
		if t.Failed() {
			return
		}
	}
	for _, name := range missing {
		t.Errorf("never reached: %s", name)
	}
}

// totals are what some worlds have seen.
type totals struct {
	worlds, clients, faults int
	keys                    int64
	packets                 uint64
	counts, states, peaks   map[string]int
}

func (s *totals) add(w *world) {
	s.worlds++
	s.clients += len(w.actors)
	s.keys += w.keys.Load()
	s.packets += w.sentPackets
	if s.counts == nil {
		s.counts, s.states = make(map[string]int), make(map[string]int)
		s.peaks = make(map[string]int)
	}
	for what, n := range w.counts {
		s.counts[what] += n
		s.faults += n
	}
	for what, n := range w.peaks {
		s.peaks[what] = max(s.peaks[what], n)
	}
	for what, n := range w.states {
		s.states[what] += n
	}
}

func (s *totals) log(t *testing.T) {
	t.Logf("%d worlds, %d clients, %d keys, %d packets, %d faults:", s.worlds, s.clients, s.keys, s.packets, s.faults)
	for _, what := range slices.Sorted(maps.Keys(s.counts)) {
		t.Logf("%8d %s", s.counts[what], what)
	}
	t.Log("peaks:")
	for _, what := range slices.Sorted(maps.Keys(s.peaks)) {
		t.Logf("%8d %s", s.peaks[what], what)
	}
	t.Log("states:")
	for _, what := range slices.Sorted(maps.Keys(s.states)) {
		t.Logf("%8d %s", s.states[what], what)
	}
}

// keptSeeds returns the seeds of testdata/seeds: a number each line, and what it was that it has shown.
func keptSeeds(t *testing.T) (seeds []uint64) {
	t.Helper()
	f, err := os.Open("testdata/seeds")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if number, _, _ := strings.Cut(lines.Text(), " "); number != "" && number != "#" {
			seed, err := strconv.ParseUint(number, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			seeds = append(seeds, seed)
		}
	}
	return seeds
}
