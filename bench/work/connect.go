//go:build linux

package work

import (
	"time"

	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/program"
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
	if server, ok := j.Server.(program.Rememberer); ok {
		for until := time.Now().Add(rig.Patience); !server.Remembered(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(until) {
				j.T.Fatal("the job's session is not remembered")
			}
		}
	}
	j.Begin()
	for range w.Times {
		start := time.Now()
		prompt.add(j.Clients[0].login(j.T).Sub(start), j.since(start))
	}
	j.End()
	return []Figure{prompt}
}

// login opens a session and ends it. It returns when the first prompt showed.
func (c Client) login(t *measure.T) time.Time {
	c.Start(t)
	ready := c.AwaitReady(t)
	c.types("exit\r")
	select {
	case <-c.Terminal.Closed():
	case <-time.After(rig.Patience):
		t.Fatal("a client does not end after exit")
	}
	return ready
}
