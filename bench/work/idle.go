//go:build linux

package work

import (
	"slices"
	"time"

	"github.com/quicterm/quicterm/bench/measure"
)

// Idle is a session with a shell at which nobody types any more. It yields nothing of its
// own: the costs of all works are counted.
type Idle struct {
	shell
	After time.Duration // from the last key to Begin
	Rest  time.Duration
}

func (w Idle) Run(j *Job) []Figure {
	// While packets are sent, quic-go looks for larger ones, once.
	for range warmupKeys {
		for _, c := range j.Clients {
			c.types(" ")
		}
		time.Sleep(maxWarmupPace)
	}
	time.Sleep(w.After)
	j.Begin()
	time.Sleep(w.Rest)
	j.End()
	return nil
}

// Memory opens more sessions beside the first, and yields the resident memory of their
// processes, in MiB: "holder rss" and "client rss", the worst, and "daemon rss", how much
// the daemon's grows by a session.
type Memory struct {
	ownSessions
	More int
}

func (w Memory) Run(j *Job) []Figure {
	const settle = 5 * time.Second
	const mib = 1 << 20
	first := j.Clients[0]
	daemon := j.Host.Processes()
	time.Sleep(settle)
	before := daemonRSS(j.T, daemon)
	j.Begin()
	clients := []int{first.PID()}
	for range w.More {
		c := *first
		c.Start(j.T)
		c.AwaitReady(j.T)
		clients = append(clients, c.PID())
	}
	time.Sleep(settle)
	client, holder := 0, 0
	for _, pid := range clients {
		client = max(client, measure.RSS(j.T, pid))
	}
	for _, pid := range j.Server.Processes(j.T) {
		if !slices.Contains(daemon, pid) {
			holder = max(holder, measure.RSS(j.T, pid))
		}
	}
	growth := float64(daemonRSS(j.T, daemon)-before) / float64(w.More)
	j.End()
	return []Figure{one("holder rss", "MiB", float64(holder)/mib), one("client rss", "MiB", float64(client)/mib),
		one("daemon rss", "MiB", growth/mib)}
}
