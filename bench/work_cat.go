//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// cat is somebody who looks at a long file of text, as compilers print it. It yields
// "rate", in MB of the file a second until the prompt is there again; and "complete", the
// share of its lines that were ever shown.
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
	all := lines(j.m, file)
	rate := figure{metric: "rate", unit: "MB/s", portable: j.scenario.link.Rate > 0}
	complete := figure{metric: "complete", portable: true}
	c := j.clients[0]
	shownLines := new(lineCounter)
	c.screen.also(shownLines)
	j.begin()
	for n := range w.times {
		before := shownLines.Load()
		typed, shown := c.answer("cat "+file+"\r", mark(n+2), w.limit)
		if shown.IsZero() {
			rate.never = "no prompt within " + w.limit.String()
			break
		}
		rate.values = append(rate.values, float64(w.size)/shown.Sub(typed).Seconds()/1e6)
		rate.at = append(rate.at, j.since(typed))
		const echo = 1 // the line that was typed
		share := min(float64(max(shownLines.Load()-before-echo, 0))/float64(all), 1)
		complete.values = append(complete.values, share)
		complete.at = append(complete.at, j.since(typed))
		if share < 1 {
			rate.never = fmt.Sprintf("%.4g %% of the lines are ever shown", 100*share)
			complete.never = rate.never
		}
	}
	j.end()
	return []figure{rate, complete}
}

// A lineCounter counts the lines that are written to it.
type lineCounter struct{ atomic.Int64 }

func (l *lineCounter) Write(b []byte) (int, error) {
	l.Add(int64(bytes.Count(b, []byte{'\n'})))
	return len(b), nil
}

// lines returns how many lines a file has.
func lines(m *measurement, name string) int64 {
	file, err := os.Open(name)
	if err != nil {
		m.Fatal(err)
	}
	defer file.Close()
	l := new(lineCounter)
	if _, err := io.Copy(l, file); err != nil {
		m.Fatal(err)
	}
	return l.Load()
}
