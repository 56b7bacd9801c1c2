//go:build linux

package work

import (
	"crypto/sha256"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/quicterm/quicterm/bench/screen"
)

// Output is a program that prints for a time, while nobody types. All that it prints is to
// be shown in the end: its last line is a hash of the others, with which those that were
// ever shown are compared. It yields "complete", the share of them; and if there are
// events, in milliseconds, "back", from the last of them to the next new line; or, if Gap is
// set, "gap", the longest time without a new line after it.
type Output struct {
	Lasts time.Duration
	Rate  int           // bytes a second
	Late  time.Duration // limit for the end to show
	Gap   bool          // the event does not end a disturbance, but begins it
}

func (w Output) Shell(self string) string {
	return fmt.Sprintf("exec %s output %d %d", self, w.Lasts, w.Rate)
}

// output prints when a key is pressed, so that it begins with the work.
func (w Output) output(in io.Reader, out io.Writer) error {
	fmt.Fprintln(out, readyMark)
	if _, err := in.Read(make([]byte, 100)); err != nil {
		return err
	}
	lines, sum, err := w.print(out)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "sum %08d %x\n", lines, sum)
	_, err = in.Read(make([]byte, 100)) // until the terminal is closed
	return err
}

// print prints lines, and returns how many, and their hash.
func (w Output) print(to io.Writer) (lines int, sum []byte, err error) {
	hash := sha256.New()
	next := newFlood()
	for start := time.Now(); ; {
		time.Sleep(10 * time.Millisecond)
		past := min(time.Since(start), w.Lasts)
		for ; float64(lines*(floodLine+1)) < past.Seconds()*float64(w.Rate); lines++ {
			line := next()
			io.WriteString(hash, line)
			if _, err := io.WriteString(to, line); err != nil {
				return lines, nil, err
			}
		}
		if past == w.Lasts {
			return lines, hash.Sum(nil), nil
		}
	}
}

// A lineRecord is the lines of output that were ever shown.
type lineRecord struct {
	mu      sync.Mutex
	lines   map[int]string
	after   time.Time // if it is set, back is when the first new line after it came
	back    time.Time
	latest  time.Time     // when the latest new line came
	gap     time.Duration // the longest between new lines after that time
	partial []byte        // of a line
	plain   screen.Plain
}

func newLineRecord() *lineRecord { return &lineRecord{lines: make(map[int]string)} }

// Write takes what a client writes. One that passes lines on as they are writes them all.
func (t *lineRecord) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range b {
		switch {
		case !t.plain.Text(c) || c == '\r':
		case c == '\n':
			t.line(string(t.partial))
			t.partial = t.partial[:0]
		case len(t.partial) < 2*screen.Columns:
			t.partial = append(t.partial, c)
		}
	}
	return len(b), nil
}

// look takes what the screen shows. Lines that a client paints are only there.
func (t *lineRecord) look(v screen.View) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for n := range screen.Rows {
		t.line(v.Row(n))
	}
}

// line takes a line if it is one of the output.
func (t *lineRecord) line(text string) {
	found := floodLinePattern.FindStringSubmatch(text)
	if found == nil {
		return
	}
	n, _ := strconv.Atoi(found[1])
	if _, shown := t.lines[n]; shown {
		return
	}
	t.lines[n] = text
	now := time.Now()
	if !t.after.IsZero() && now.After(t.after) {
		if t.back.IsZero() {
			t.back, t.latest = now, t.after
		}
		t.gap = max(t.gap, now.Sub(t.latest))
	}
	t.latest = now
}

// complete returns the share of some lines that were shown, and whether their hash is
// that of all.
func (t *lineRecord) complete(lines int, sum string) (share float64, same bool) {
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
	return float64(shown) / float64(lines), fmt.Sprintf("%x", hash.Sum(nil)) == sum
}

var sumLine = regexp.MustCompile(`^sum (\d{8}) ([0-9a-f]{64})$`)

func (w Output) Run(j *Job) []Figure {
	complete := Figure{Metric: "complete", Portable: true}
	back := Figure{Metric: "back", Unit: "ms", Portable: true}
	if w.Gap {
		back.Metric = "gap"
	}
	var mu sync.Mutex
	j.Begin()
	j.each(func(c *Client) {
		t := newLineRecord()
		for _, end := range j.Ends {
			t.after = j.At(end, c.Number)
		}
		c.Screen.CopyTo(t)
		var lines int
		var sum string
		ended := c.Screen.Watch(func(v screen.View) bool {
			t.look(v)
			for n := range screen.Rows {
				if found := sumLine.FindStringSubmatch(v.Row(n)); found != nil {
					lines, _ = strconv.Atoi(found[1])
					sum = found[2]
				}
			}
			return sum != ""
		})
		c.types("\r")
		shown := screen.Await(ended, j.began.Add(w.Lasts+w.Late))
		mu.Lock()
		defer mu.Unlock()
		if shown.IsZero() {
			complete.Never = fmt.Sprintf("the end does not show within %v", w.Late)
			back.Never = complete.Never
			return
		}
		share, same := t.complete(lines, sum)
		complete.Values = append(complete.Values, share)
		switch {
		case share < 1:
			complete.Never = fmt.Sprintf("%.3g %% of the lines are ever shown", 100*share)
		case !same:
			complete.Never = "the lines that are shown have another hash"
		}
		switch {
		case t.back.IsZero():
			back.Never = "no new line shows"
		case w.Gap:
			back.add(t.gap, j.since(t.after))
		default:
			back.add(t.back.Sub(t.after), j.since(t.after))
		}
	})
	j.End()
	if len(j.Ends) == 0 {
		return []Figure{complete}
	}
	return []Figure{complete, back}
}
