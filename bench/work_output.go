//go:build linux

package main

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

// output is a program that prints for a time, while things happen on the link. All that
// it prints is to be shown sometime: it ends with a hash of its lines, with which those
// that were ever shown are compared. It yields "complete", the share of them; and where
// events happen "back", milliseconds from the last of them to the next new line.
type output struct {
	lasts time.Duration
	rate  int           // bytes per second
	late  time.Duration // how long the end may take to show
}

func (w output) shell(self string) string {
	// It waits for a key, so that it begins with the work.
	return fmt.Sprintf("exec %s output --for %v --rate %d", self, w.lasts, w.rate)
}

// outputCommand is the program that prints.
func outputCommand() *cobra.Command {
	var w output
	c := &cobra.Command{
		Use:    "output",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			fmt.Println(readyMark)
			if _, err := os.Stdin.Read(make([]byte, 100)); err != nil {
				return err
			}
			lines, sum, err := w.print(os.Stdout)
			if err != nil {
				return err
			}
			fmt.Printf("sum %08d %x\n", lines, sum)
			_, err = os.Stdin.Read(make([]byte, 100)) // until the terminal is closed
			return err
		},
	}
	c.Flags().DurationVar(&w.lasts, "for", 0, "how long it prints")
	c.Flags().IntVar(&w.rate, "rate", 0, "bytes per second")
	return c
}

// print prints lines, and returns how many, and their hash.
func (w output) print(to io.Writer) (lines int, sum []byte, err error) {
	hash := sha256.New()
	random := rand.NewChaCha8([32]byte{})
	raw := make([]byte, floodText)
	for start := time.Now(); ; {
		time.Sleep(10 * time.Millisecond)
		past := min(time.Since(start), w.lasts)
		for ; float64(lines*(floodLine+1)) < past.Seconds()*float64(w.rate); lines++ {
			random.Read(raw)
			line := fmt.Sprintf("%08d %s\n", lines+1, base64.StdEncoding.EncodeToString(raw))
			io.WriteString(hash, line)
			if _, err := io.WriteString(to, line); err != nil {
				return lines, nil, err
			}
		}
		if past == w.lasts {
			return lines, hash.Sum(nil), nil
		}
	}
}

// A transcript keeps the lines of output that were ever shown.
type transcript struct {
	mu      sync.Mutex
	lines   map[int]string
	after   time.Time // from which on a new line is looked for, if it is set
	back    time.Time // when that came
	partial []byte    // of a line
	plain   typist    // of which plain is used
}

func newTranscript() *transcript { return &transcript{lines: make(map[int]string)} }

// Write takes what a client writes: if it passes lines on as they are, all are in it.
func (t *transcript) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range b {
		switch {
		case !t.plain.plain(c) || c == '\r':
		case c == '\n':
			t.line(string(t.partial))
			t.partial = t.partial[:0]
		case len(t.partial) < 2*screenColumns:
			t.partial = append(t.partial, c)
		}
	}
	return len(b), nil
}

// look takes what the screen shows: if the client paints that, lines are only there.
func (t *transcript) look(v view) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for n := range screenRows {
		t.line(v.row(n))
	}
}

// line takes a line, if it is one of the output.
func (t *transcript) line(text string) {
	found := wholeLine.FindStringSubmatch(text)
	if found == nil {
		return
	}
	n, _ := strconv.Atoi(found[1])
	if _, shown := t.lines[n]; shown {
		return
	}
	t.lines[n] = text
	if now := time.Now(); !t.after.IsZero() && now.After(t.after) && t.back.IsZero() {
		t.back = now
	}
}

// complete returns the share of some lines that were shown, and whether their hash is
// that of all.
func (t *transcript) complete(lines int, sum string) (share float64, same bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	hash := sha256.New()
	shown := 0
	for n := range lines {
		if text, ok := t.lines[n+1]; ok {
			shown++
			fmt.Fprintln(hash, text)
		}
	}
	return float64(shown) / float64(lines), hexSum(hash) == sum
}

func hexSum(h hash.Hash) string { return fmt.Sprintf("%x", h.Sum(nil)) }

var sumLine = regexp.MustCompile(`^sum (\d{8}) ([0-9a-f]{64})$`)

func (w output) run(j *job) []figure {
	complete := figure{metric: "complete", unit: "", portable: true}
	back := figure{metric: "back", unit: "ms", portable: true}
	var mu sync.Mutex
	j.begin()
	j.each(func(_ int, c *client) {
		t := newTranscript()
		for _, at := range j.ends() {
			t.after = at
		}
		c.screen.also(t)
		var lines int
		var sum string
		ended := c.screen.watch(func(v view) bool {
			t.look(v)
			for n := range screenRows {
				if found := sumLine.FindStringSubmatch(v.row(n)); found != nil {
					lines, _ = strconv.Atoi(found[1])
					sum = found[2]
				}
			}
			return sum != ""
		})
		c.types("\r")
		shown := await(ended, j.started.Add(w.lasts+w.late))
		mu.Lock()
		defer mu.Unlock()
		if shown.IsZero() {
			complete.never = fmt.Sprintf("the end does not show within %v", w.late)
			back.never = complete.never
			return
		}
		share, same := t.complete(lines, sum)
		complete.values = append(complete.values, share)
		switch {
		case share < 1:
			complete.never = fmt.Sprintf("%.3g %% of the lines are ever shown", 100*share)
		case !same:
			complete.never = "the hash of what is shown is another one"
		}
		if t.back.IsZero() {
			back.never = "no new line shows"
		} else {
			back.add(t.back.Sub(t.after), j.since(t.after))
		}
	})
	j.end()
	if len(j.ends()) == 0 {
		return []figure{complete}
	}
	return []figure{complete, back}
}
