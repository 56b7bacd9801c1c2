//go:build linux || darwin

package account

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func (w *turn) isReady() bool {
	select {
	case <-w.ready:
		return true
	default:
		return false
	}
}

// A source that had no turn yet has the next one, however many commands of others wait, also for a
// command that another source has asked for first.
func TestTurns(t *testing.T) {
	var ts turns
	var flood []*turn
	for i := range 200 {
		flood = append(flood, ts.enter(fmt.Sprint("flood", i%5)))
	}
	end := func() {
		t.Helper()
		for i, w := range flood {
			if w.isReady() {
				ts.leave(w)
				flood = append(flood[:i], flood[i+1:]...)
				return
			}
		}
		t.Fatal("no command runs")
	}
	for range 10 { // each source has had a turn
		end()
	}
	honest := ts.enter("honest")
	end()
	if !honest.isReady() {
		t.Error("a new source waits for others")
	}
	ts.leave(honest)
	shared := flood[len(flood)-1]
	ts.share(shared, "another")
	end()
	if !shared.isReady() {
		t.Error("a source waits for others that have asked for the same")
	}
	if ts.running != maxCommands {
		t.Errorf("%d commands run, want %d", ts.running, maxCommands)
	}
	for _, w := range flood {
		ts.leave(w)
	}
	if ts.running != 0 || len(ts.waiting) != 0 || len(ts.bySource) != 0 {
		t.Errorf("after the end: %d run, %d wait, %v", ts.running, len(ts.waiting), ts.bySource)
	}
}

// The commands of one source are fewer at a time than those of all.
func TestTurnsOfOneSource(t *testing.T) {
	var ts turns
	var all []*turn
	for range maxCommands {
		all = append(all, ts.enter("slow"))
	}
	if ts.running != sourceCommands {
		t.Errorf("%d commands of a source run, want %d", ts.running, sourceCommands)
	}
	if !ts.enter("honest").isReady() {
		t.Error("another source waits")
	}
	ts.share(all[maxCommands-1], "shared")
	if !all[maxCommands-1].isReady() {
		t.Error("a command waits that another source asks for too")
	}
}

// So many commands start a second. The sources that are remembered have a bound.
func TestTurnsASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ts turns
		start := time.Now()
		const n = 2 * maxServed
		for i := range n {
			w := ts.enter(fmt.Sprint(i))
			<-w.ready
			ts.leave(w)
		}
		want := time.Second * (n - commandBurst) / commandRate
		if d := time.Since(start); d < want || d > want+want/10+time.Second {
			t.Errorf("%d commands take %v, want %v", n, d, want)
		}
		if len(ts.served) > maxServed {
			t.Errorf("%d sources are remembered", len(ts.served))
		}
	})
}
