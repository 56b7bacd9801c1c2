//go:build linux || darwin || wasip1

package main

import (
	"flag"
	"fmt"
	"testing"
	"time"

	_ "github.com/quicterm/quicterm/bench/bubble"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "play the world of this seed only")
	forFlag   = flag.Duration("for", 0, "play worlds for this long")
	traceFlag = flag.Bool("trace", false, "tell the story")
)

func TestSimulation(t *testing.T) {
	var story func(string)
	if *traceFlag {
		story = func(line string) { fmt.Println(line) }
	}
	if *seedFlag != 0 {
		simulate(t, *seedFlag, story)
		return
	}
	begun := time.Now()
	for seed := uint64(1); seed <= 3 || time.Since(begun) < *forFlag; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			at := time.Now()
			w := simulate(t, seed, story)
			t.Logf("%d faults, %d clients, %d keys, %v", len(w.faults), len(w.actors), w.keys.Load(), time.Since(at))
		})
	}
}
