//go:build linux

package main

import "time"

// idle is a session with a shell at which somebody has typed, and does not any more. What
// it costs is counted of every work.
type idle struct {
	after time.Duration // the last key, from when on it counts
	rest  time.Duration
}

func (idle) shell(string) string { return countingShell }

func (w idle) run(j *job) []figure {
	// While something is sent, quic-go looks for larger packets, once.
	for range typedBefore {
		for _, c := range j.clients {
			c.types(" ")
		}
		time.Sleep(feelPace)
	}
	time.Sleep(w.after)
	j.begin()
	time.Sleep(w.rest)
	j.end()
	return nil
}
