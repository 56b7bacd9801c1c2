//go:build linux

package main

import "time"

// idle is a session with a shell at which nobody types. What it costs is counted of
// every work.
type idle struct {
	warm time.Duration // after the last output, that does not count
	rest time.Duration
}

func (idle) shell(string) string { return countingShell }

func (w idle) run(j *job) []figure {
	time.Sleep(w.warm)
	j.begin()
	time.Sleep(w.rest)
	j.end()
	return nil
}
