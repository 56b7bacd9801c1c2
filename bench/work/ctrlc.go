//go:build linux

package work

import (
	"cmp"
	"fmt"
	"sync"
	"time"
)

// CtrlC runs a program that prints more than the link carries, and then types Ctrl-C. It
// yields "prompt", milliseconds from that to the shell's next prompt, and "rate", in
// Mbit/s, what the link carried for a time before.
type CtrlC struct {
	shell
	Command func(self string) string // of sh
	Keys    string                   // "" means Interrupt
	Times   int                      // by each client
	Lead    time.Duration            // before the rate is measured
	Used    time.Duration            // for which it is
	Exact   bool                     // Command is a flood whose lines are to come once: "complete" is 1 if they do
}

// What is typed.
const (
	Interrupt   = "\x03"
	SkipBacklog = Interrupt + "\r~>"
)

// promptLimit is how long a prompt may take: a queue of 1 MiB takes 8 s at 1 Mbit/s.
const promptLimit = 30 * time.Second

// Yes prints one line again and again.
func Yes(string) string { return "yes" }

// Flood prints lines that zstd cannot compress much, as fast as possible or at a rate in
// bytes a second.
func Flood(rate int) func(self string) string {
	return func(self string) string { return fmt.Sprintf("%s flood %d", self, rate) }
}

func (w CtrlC) Run(j *Job) []Figure {
	const stagger = 200 * time.Millisecond // floods that begin at once would all begin slowly
	prompt := Figure{Metric: "prompt", Unit: "ms", Portable: true}
	rate := Figure{Metric: "rate", Unit: "Mbit/s", Portable: true}
	complete := Figure{Metric: "complete", Portable: true}
	keys := cmp.Or(w.Keys, Interrupt)
	var mu sync.Mutex
	j.Begin()
	j.each(func(c *Client) {
		time.Sleep(time.Duration(c.Number) * stagger)
		for n := range w.Times {
			shownText := new(transcript)
			if w.Exact {
				c.Screen.CopyTo(shownText)
			}
			c.types(w.Command(Executable(j.T)) + "\r")
			time.Sleep(w.Lead)
			received := receiveRate(c, w.Used)
			typed, shown := c.answer(keys, mark(n+2), promptLimit)
			mu.Lock()
			if shown.IsZero() {
				prompt.Never = fmt.Sprintf("no prompt within %v", promptLimit)
			} else {
				prompt.add(shown.Sub(typed), j.since(typed))
			}
			rate.Values = append(rate.Values, 8*received/1e6)
			if w.Exact {
				share := 1.0
				if err := checkFlood(shownText.String()); err != nil {
					share, complete.Never = 0, err.Error()
				}
				complete.Values = append(complete.Values, share)
			}
			mu.Unlock()
			if shown.IsZero() {
				return
			}
			time.Sleep(Settle / 2)
		}
	})
	j.End()
	if w.Exact {
		return []Figure{prompt, rate, complete}
	}
	return []Figure{prompt, rate}
}

// receiveRate measures how many bytes a second arrive at a client, for a time.
func receiveRate(c *Client, d time.Duration) float64 {
	before, start := c.Received(), time.Now()
	time.Sleep(d)
	return float64(c.Received()-before) / time.Since(start).Seconds()
}
