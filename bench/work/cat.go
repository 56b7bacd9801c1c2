//go:build linux

package work

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"

	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/program"
)

// Cat shows a long file of text, as compilers print it. It yields "rate", in MB of the
// file a second until the prompt is there again; and "complete", the share of its lines
// that were ever shown.
type Cat struct {
	shell
	Size  int // bytes
	Times int
	Limit time.Duration // for each time
}

func (w Cat) Run(j *Job) []Figure {
	file, lines := logFile(j.T, w.Size)
	rate := Figure{Metric: "rate", Unit: "MB/s", Portable: j.Link.Rate > 0}
	complete := Figure{Metric: "complete", Portable: true}
	c := j.Clients[0]
	shownLines := new(lineCounter)
	c.Screen.CopyTo(shownLines)
	j.Begin()
	for n := range w.Times {
		before := shownLines.Load()
		typed, shown := c.answer("cat "+file+"\r", mark(n+2), w.Limit)
		if shown.IsZero() {
			rate.Never = "no prompt within " + w.Limit.String()
			break
		}
		rate.Values = append(rate.Values, float64(w.Size)/shown.Sub(typed).Seconds()/1e6)
		rate.At = append(rate.At, j.since(typed))
		const echo = 1 // the line that was typed
		share := min(float64(max(shownLines.Load()-before-echo, 0))/float64(lines), 1)
		complete.Values = append(complete.Values, share)
		complete.At = append(complete.At, j.since(typed))
		if share < 1 {
			rate.Never = fmt.Sprintf("%.4g %% of the lines are ever shown", 100*share)
			complete.Never = rate.Never
		}
	}
	j.End()
	return []Figure{rate, complete}
}

// A lineCounter counts the lines that are written to it.
type lineCounter struct{ atomic.Int64 }

func (l *lineCounter) Write(b []byte) (int, error) {
	l.Add(int64(bytes.Count(b, []byte{'\n'})))
	return len(b), nil
}

// Pipe is Cat of random bytes, which cannot be compressed, without terminals. It yields "rate",
// from the first byte on.
type Pipe struct {
	ownSessions
	Blocks int // how many it shows, of pipeBlock bytes
	Times  int
}

const pipeBlock = 100_000_000

func (w Pipe) Run(j *Job) []Figure {
	server, ok := j.Server.(program.Piper)
	if !ok {
		j.T.Fatal("it has no sessions without a terminal")
	}
	command := "cat" + strings.Repeat(" "+randomFile(j.T, pipeBlock), w.Blocks)
	rate := Figure{Metric: "rate", Unit: "MB/s"}
	j.Begin()
	for range w.Times {
		cmd := server.Pipe(j.Clients[0].Machine, command)
		rate.Values = append(rate.Values, pipeRate(j.T, cmd)/1e6)
	}
	j.End()
	return []Figure{rate}
}

// pipeRate returns how many bytes a second a command writes.
func pipeRate(t *measure.T, cmd *exec.Cmd) float64 {
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer timer.Stop()
	first, _ := out.Read(make([]byte, 1))
	start := time.Now()
	n, _ := io.Copy(struct{ io.Writer }{io.Discard}, out)
	took := time.Since(start)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%s: %v", cmd.Args[0], err)
	}
	return float64(int64(first)+n) / took.Seconds()
}
