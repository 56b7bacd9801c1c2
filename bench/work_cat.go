//go:build linux

package main

import (
	"os"
	"path/filepath"
	"time"
)

// cat is somebody who looks at a long file of text, as compilers print it. It yields
// "rate", in MB of the file a second until the prompt is there again.
type cat struct {
	size  int
	times int
	limit time.Duration // for one time
}

func (cat) shell(string) string { return countingShell }

func (w cat) run(j *job) []figure {
	dir, err := os.MkdirTemp("", "qt")
	if err != nil {
		j.m.Fatal(err)
	}
	j.m.Cleanup(func() { os.RemoveAll(dir) })
	file := filepath.Join(dir, "log")
	writeLog(j.m, file, w.size)
	rate := figure{metric: "rate", unit: "MB/s", portable: j.scenario.link.Rate > 0}
	c := j.clients[0]
	j.begin()
	for n := range w.times {
		typed, shown := c.answer("cat "+file+"\r", mark(n+2), w.limit)
		if shown.IsZero() {
			rate.never = "no prompt within " + w.limit.String()
			break
		}
		rate.values = append(rate.values, float64(w.size)/shown.Sub(typed).Seconds()/1e6)
		rate.at = append(rate.at, j.since(typed))
	}
	j.end()
	return []figure{rate}
}
