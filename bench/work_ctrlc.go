//go:build linux

package main

import (
	"fmt"
	"sync"
	"time"
)

// ctrlC is somebody who has a program print more than the link carries, and then types
// Ctrl-C. It yields "prompt", milliseconds from that to the shell's next prompt, and
// "rate", in Mbit/s, what of the link was used for a time before.
type ctrlC struct {
	command func(self string) string // of sh
	times   int                      // by each client
	lead    time.Duration            // before the rate is looked at
	used    time.Duration            // for which it is
}

// promptPatience is how long a prompt may take: a queue of 1 MiB takes 8 s at 1 Mbit/s.
const promptPatience = 30 * time.Second

func yes(string) string { return "yes" }

// incompressible prints lines that zstd can make little of.
func incompressible(self string) string { return self + " flood" }

func (ctrlC) shell(string) string { return countingShell }

func (w ctrlC) run(j *job) []figure {
	prompt := figure{metric: "prompt", unit: "ms", portable: true}
	rate := figure{metric: "rate", unit: "Mbit/s", portable: true}
	var mu sync.Mutex
	j.begin()
	j.each(func(i int, c *client) {
		// Floods that begin at the same time would all be slow to begin.
		time.Sleep(time.Duration(i) * feelPace)
		for n := range w.times {
			c.types(w.command(executable(j.m)) + "\r")
			time.Sleep(w.lead)
			arrived := arrivals(c, w.used)
			typed, shown := c.answer(interrupt, mark(n+2), promptPatience)
			mu.Lock()
			if shown.IsZero() {
				prompt.never = fmt.Sprintf("no prompt within %v", promptPatience)
			} else {
				prompt.add(shown.Sub(typed), j.since(typed))
			}
			rate.values = append(rate.values, 8*arrived/1e6)
			mu.Unlock()
			if shown.IsZero() {
				return
			}
			time.Sleep(settle / 2)
		}
	})
	j.end()
	return []figure{prompt, rate}
}

// arrivals returns how many bytes a second arrive at a client, for a time.
func arrivals(c *client, d time.Duration) float64 {
	_, before := c.Arrived()
	start := time.Now()
	time.Sleep(d)
	_, after := c.Arrived()
	return float64(after-before) / time.Since(start).Seconds()
}

// countingShell runs a shell whose prompts are marks.
const countingShell = "exec env PS1='<$((n=n+1))> ' HISTFILE= sh"

// mark returns a text that shows once: what a session shows as number n. The first is
// readyMark.
func mark(n int) string { return fmt.Sprintf("<%d>", n) }

// each does something with all clients side by side.
func (j *job) each(do func(i int, c *client)) {
	j.m.sideBySide(len(j.clients), func(_ *measurement, i int) { do(i, j.clients[i]) })
}

// types types, unless the client is gone: then no answer comes.
func (c *client) types(text string) { c.x.TTY.WriteString(text) }

// answer types and returns when a mark shows, or the zero time if none does until then.
func (c *client) answer(text, mark string, patience time.Duration) (typed, shown time.Time) {
	next := c.screen.mark(mark)
	typed = time.Now()
	c.types(text)
	return typed, await(next, typed.Add(patience))
}
