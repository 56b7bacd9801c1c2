//go:build linux

package work

import (
	"cmp"
	"path/filepath"
	"time"

	"github.com/quicterm/quicterm/bench/measure"
)

// Leaks does another work, and yields how many more "descriptors", "threads" and
// "sessions" its first client and the daemon have after it than before.
type Leaks struct {
	Work
	Settle time.Duration // until what an event opened is closed; 5 s if it is 0
}

func (w Leaks) Run(j *Job) []Figure {
	settle := cmp.Or(w.Settle, 5*time.Second)
	time.Sleep(settle)
	before := held(j)
	figures := w.Work.Run(j)
	time.Sleep(settle)
	after := held(j)
	for i, metric := range []string{"descriptors", "threads", "sessions"} {
		f := one(metric, "", float64(after[i]-before[i]))
		f.Portable = true
		figures = append(figures, f)
	}
	return figures
}

// held returns how many descriptors, threads and sessions there are.
func held(j *Job) (counts [3]int) {
	for _, pid := range append(j.Host.Processes(), j.Clients[0].PID()) {
		counts[0] += measure.Descriptors(j.T, pid)
		counts[1] += measure.Threads(j.T, pid)
	}
	sockets, err := filepath.Glob(j.Host.Path("run/*/*.sock"))
	if err != nil {
		j.T.Fatal(err)
	}
	counts[2] = len(sockets)
	return counts
}
