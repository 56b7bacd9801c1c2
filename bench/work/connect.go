//go:build linux

package work

import (
	"time"

	"github.com/quicterm/quicterm/bench/rig"
)

// Connect opens sessions, one after the other, and yields "prompt", milliseconds from the
// start of a client to its first prompt.
type Connect struct {
	ownSessions
	Times int
}

func (w Connect) Run(j *Job) []Figure {
	prompt := Figure{Metric: "prompt", Unit: "ms", Portable: true}
	j.Begin()
	for range w.Times {
		c := *j.Clients[0]
		start := time.Now()
		c.Start(j.T)
		prompt.add(c.AwaitReady(j.T).Sub(start), j.since(start))
		c.types("exit\r")
		select {
		case <-c.Terminal.Closed():
		case <-time.After(rig.Patience):
			j.T.Fatal("a client does not end after exit")
		}
	}
	j.End()
	return []Figure{prompt}
}
