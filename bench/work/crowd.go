//go:build linux

package work

import (
	"time"

	"github.com/quicterm/quicterm/bench/measure"
)

// Crowd is many sessions of real clients, of which a tenth types. It yields, for each session, "own
// memory", MiB that both ends have for themselves alone, and "idle cpu", milliseconds of CPU time
// a second while nobody types; and "truth" of those who type, as Typing does.
type Crowd struct {
	Pace time.Duration // of each who types
	Keys int
}

func (Crowd) Shell(self string) string { return Typing{}.Shell(self) }

func (w Crowd) Run(j *Job) []Figure {
	const (
		settle = 10 * time.Second // until logins have no more effects
		window = 20 * time.Second
	)
	time.Sleep(settle)
	pids := j.Server.Processes(j.T)
	for _, c := range j.Clients {
		pids = append(pids, measure.Family(c.PID())...)
	}
	n := float64(len(j.Clients))
	j.Begin()
	before := measure.CPUTime(j.T, pids...)
	time.Sleep(window)
	idle := one("idle cpu", "ms/s", measure.Milliseconds(measure.CPUTime(j.T, pids...)-before)/window.Seconds()/n)
	memory := 0
	for _, pid := range pids {
		memory += measure.Private(j.T, pid)
	}
	own := one("own memory", "MiB", float64(memory)/(1<<20)/n)

	truth := j.truth(j.Clients[:max(len(j.Clients)/10, 1)], Typing{Pace: w.Pace, Spans: Keys(w.Keys, w.Pace)})
	j.End()
	return []Figure{truth, own, idle}
}
