//go:build linux

package work

import (
	"slices"
	"time"

	"github.com/quicterm/quicterm/bench/program"
	"github.com/quicterm/quicterm/bench/rig"
)

// Carried does a work in sessions that a transport carries: "quic", "tcp" or "ssh". It fails if
// another one does, before or after the work.
//
// If an event ends a disturbance, another transport is to carry the sessions before. Then it also
// yields "moved", milliseconds from the first such event until this transport does.
type Carried struct {
	By string
	Work
}

func (w Carried) Run(j *Job) []Figure {
	if len(j.Ends) == 0 {
		w.check(j, "before", func(by string) bool { return by == w.By })
		figures := w.Work.Run(j)
		w.check(j, "after", func(by string) bool { return by == w.By })
		return figures
	}
	w.check(j, "before", func(by string) bool { return by != w.By })
	moved := make(chan Figure, 1)
	go func() {
		defer close(moved)
		j.T.Guard(func() { moved <- w.watch(j) })
	}()
	figures := w.Work.Run(j)
	return append(figures, <-moved)
}

// transports returns what carries the sessions.
func (w Carried) transports(j *Job) []string {
	server, ok := j.Server.(program.Carrier)
	if !ok {
		j.T.Fatal("the program has no transports")
	}
	clients := make([]int, len(j.Clients))
	for i, c := range j.Clients {
		clients[i] = c.PID()
	}
	return server.Transports(j.T, clients)
}

func (w Carried) check(j *Job, when string, right func(by string) bool) {
	for i, by := range w.transports(j) {
		if !right(by) {
			j.T.Fatalf("%q carries the session of client %d %s the work", by, i, when)
		}
	}
}

// watch returns when the sessions have moved. It asks only after an event: that takes CPU time.
func (w Carried) watch(j *Job) Figure {
	const pace = 50 * time.Millisecond // the most by which a figure is wrong
	moved := Figure{Metric: "moved", Unit: "ms", Portable: true}
	done := make([]bool, len(j.Clients))
	until := time.Now().Add(slices.Max(j.Ends) + time.Duration(len(j.Clients))*j.Stagger + 2*rig.Patience)
	for slices.Contains(done, false) {
		time.Sleep(pace)
		if time.Now().After(until) {
			moved.Never = w.By + " does not carry all sessions"
			return moved
		}
		var transports []string
		for i, c := range j.Clients {
			events := j.happened(c)
			if done[i] || len(events) == 0 {
				continue
			}
			if transports == nil {
				transports = w.transports(j)
			}
			if transports[i] == w.By {
				done[i] = true
				moved.add(time.Since(events[0].began), j.since(events[0].began))
			}
		}
	}
	return moved
}
