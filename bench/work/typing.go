//go:build linux

package work

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/bench/screen"
)

// Typing is keys at an even pace, typed to a program that answers each one twice. It
// yields, in milliseconds from the key: "feel", until its glyph is at its place on the
// screen, which a client that predicts may show by itself; and "truth", until the count of
// keys is there too, which only the server knows.
//
// If there are events, it also yields "back", the truth of the first key after each; or,
// if Recovery is set, "recovery", which counts from the event, upon which a key is typed at
// once.
type Typing struct {
	Pace     time.Duration // from one key of a client to the next
	Spans    []Span        // when there is typing
	Recovery bool

	// Exact is for programs that predict nothing. Instead of "feel" it yields "complete",
	// which is 1 if each answer comes once and in order.
	Exact bool

	// Steady is for clients that predict. It yields "vanished", how many of the glyphs that a client has
	// shown it took away again.
	Steady bool
}

// A Span is a time since Begin.
type Span struct{ From, Until time.Duration }

// Keys returns spans for a number of keys without a pause.
func Keys(n int, pace time.Duration) []Span { return []Span{{0, time.Duration(n) * pace}} }

const (
	// warmupKeys do not count: both ends learn what the path is like, and quic-go looks
	// for larger packets on loopback. They come at the pace of typing, within limits.
	warmupKeys    = 20
	minWarmupPace = 100 * time.Millisecond
	maxWarmupPace = 200 * time.Millisecond

	// The keys are on the screen from row textTop on, as wide as textWidth. The one after
	// the last place is at the first.
	textTop   = 4
	textWidth = 70
	textKeys  = (screen.Rows - textTop) * textWidth
)

// key returns key number n. Neighbours differ, and those at the same place.
func key(n int) byte { return byte('a' + n%26) }

// place returns where the glyph of a key is.
func place(n int) (row, column int) {
	n %= textKeys
	return textTop + n/textWidth, n % textWidth
}

// echoed returns what the program writes when n keys were typed: the count, as a mark, and
// then the cursor goes to the place of the next key.
func echoed(n int) string {
	row, column := place(n)
	return fmt.Sprintf("\x1b[1;1H%s\x1b[%d;%dH", mark(n+1), row+1, column+1)
}

// echo answers each key with its glyph where the cursor is, and then with the count. A key
// that is lost, doubled or out of order ends it.
func echo(in, out *os.File) error {
	old, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return err
	}
	defer term.Restore(int(in.Fd()), old)
	if _, err := out.WriteString("\x1b[H\x1b[2J" + echoed(0)); err != nil {
		return err
	}
	buf := make([]byte, 1024)
	for n := 0; ; {
		got, err := in.Read(buf)
		if err != nil {
			return err
		}
		var b strings.Builder
		for _, c := range buf[:got] {
			if c != key(n) {
				return fmt.Errorf("key %d is %q, want %q", n, c, key(n))
			}
			n++
			b.WriteByte(c)
			b.WriteString(echoed(n))
		}
		if _, err := out.WriteString(b.String()); err != nil {
			return err
		}
	}
}

// counted returns the mark in the first row, or 0.
func counted(v screen.View) int {
	text := v.Row(0)
	if len(text) < 3 || text[0] != '<' || text[len(text)-1] != '>' {
		return 0
	}
	n, _ := strconv.Atoi(text[1 : len(text)-1])
	return n
}

func (Typing) Shell(self string) string { return "exec " + self + " echo" }

// A keystroke is a key that was typed.
type keystroke struct {
	at          time.Time
	feel, truth <-chan time.Time
	vanished    <-chan time.Time // nil if that is not watched
}

// press types the next key.
func (c *Client) press() keystroke {
	n := c.typed
	c.typed++
	row, column := place(n)
	k := keystroke{
		feel:  c.Screen.Watch(func(v screen.View) bool { return v.At(row, column) == rune(key(n)) }),
		truth: c.Screen.Watch(func(v screen.View) bool { return counted(v) > n+1 }),
		at:    time.Now(),
	}
	c.types(string(key(n)))
	return k
}

// press types the next key for a client.
func (w Typing) press(c *Client) keystroke {
	n := c.typed
	k := c.press()
	if w.Steady {
		row, column := place(n)
		shown := false
		k.vanished = c.Screen.Watch(func(v screen.View) bool {
			if v.Terminal.Synchronized() { // a person does not see what is half drawn
				return false
			}
			before := shown
			shown = v.At(row, column) == rune(key(n))
			return before && !shown
		})
	}
	return k
}

func (w Typing) Run(j *Job) []Figure {
	typed := make([][]keystroke, len(j.Clients))
	streams := make([]*transcript, len(j.Clients))
	// interleaved is how much later a client types than the first one.
	interleaved := func(pace time.Duration, c *Client) time.Duration {
		return time.Duration(c.Number) * pace / time.Duration(len(j.Clients))
	}
	pace := min(max(w.Pace, minWarmupPace), maxWarmupPace)
	start := time.Now()
	j.each(func(c *Client) {
		streams[c.Number] = new(transcript)
		if w.Exact {
			c.Screen.CopyTo(streams[c.Number])
		}
		for n := range warmupKeys {
			time.Sleep(time.Until(start.Add(time.Duration(n)*pace + interleaved(pace, c))))
			typed[c.Number] = append(typed[c.Number], w.press(c))
		}
	})
	time.Sleep(time.Until(start.Add(warmupKeys * pace)))
	j.Begin()
	j.each(func(c *Client) {
		var recovers <-chan struct{}
		if w.Recovery {
			recovers = c.recovers // a key follows the event at once
		}
		for _, span := range w.Spans {
			for at := span.From; at < span.Until; {
				select {
				case <-time.After(time.Until(j.At(at, c.Number).Add(interleaved(w.Pace, c)))):
					at += w.Pace
				case <-recovers:
				}
				typed[c.Number] = append(typed[c.Number], w.press(c))
			}
		}
	})
	last := len(j.Clients) - 1
	time.Sleep(time.Until(j.At(w.Spans[len(w.Spans)-1].Until, last)))
	for _, strokes := range typed {
		j.Keys += len(strokes) - warmupKeys
	}
	j.End()
	figures := w.figures(j, typed)
	if w.Steady {
		figures = append(figures, vanishedGlyphs(typed))
	}
	if w.Exact {
		figures = append(figures, completeEchoes(typed, streams))
	}
	return figures
}

// figures awaits the answers to all keys.
func (w Typing) figures(j *Job, typed [][]keystroke) []Figure {
	feel := Figure{Metric: "feel", Unit: "ms", Portable: true}
	truth := Figure{Metric: "truth", Unit: "ms", Portable: true}
	back := Figure{Metric: "back", Unit: "ms", Portable: true}
	if w.Recovery {
		back.Metric = "recovery"
	}
	disturbed := len(j.Ends) > 0
	until := time.Now().Add(rig.Patience)
	missing, keys := 0, 0
	for i, strokes := range typed {
		events := j.happened(j.Clients[i])
		for _, k := range strokes[warmupKeys:] {
			keys++
			felt, known := screen.Await(k.feel, until), screen.Await(k.truth, until)
			if felt.IsZero() || known.IsZero() {
				missing++
				if disturbed {
					continue
				}
				felt, known = until, until
			}
			feel.add(felt.Sub(k.at), j.since(k.at))
			truth.add(known.Sub(k.at), j.since(k.at))
			if len(events) > 0 && !k.at.Before(events[0].done) {
				from := k.at
				if w.Recovery {
					from = events[0].began
				}
				back.add(known.Sub(from), j.since(k.at))
				events = events[1:]
			}
		}
	}
	why := fmt.Sprintf("%d of %d keys are not answered within %v", missing, keys, rig.Patience)
	switch {
	case missing == 0:
	case disturbed:
		feel.Never, truth.Never, back.Never = why, why, why
	default: // they are late, and later than it seems
		why += ", and count as if they were then"
		feel.Note, truth.Note = why, why
	}
	figures := []Figure{truth}
	if !w.Exact {
		figures = []Figure{feel, truth}
	}
	if disturbed {
		figures = append(figures, back)
	}
	return figures
}

// vanishedGlyphs counts, for each client, the glyphs that were seen and then not.
func vanishedGlyphs(typed [][]keystroke) Figure {
	vanished := Figure{Metric: "vanished", Portable: true}
	for _, strokes := range typed {
		n := 0.0
		for _, k := range strokes {
			select {
			case <-k.vanished:
				n++
			default:
			}
		}
		vanished.Values = append(vanished.Values, n)
	}
	return vanished
}

// checkEchoes returns what is wrong with the answers to a number of keys.
func checkEchoes(text string, keys int) error {
	var all strings.Builder
	for n := range keys {
		all.WriteString(string(key(n)) + mark(n+2))
	}
	want := all.String()
	got := strings.TrimPrefix(text, readyMark) // drawn before or after CopyTo
	if got == want {
		return nil
	}
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	return fmt.Errorf("the output differs from byte %d of %d on: %.20q", at, len(want), got[at:])
}

// completeEchoes reports whether each answer came once and in order.
func completeEchoes(typed [][]keystroke, streams []*transcript) Figure {
	const late = 100 * time.Millisecond // for answers that come twice
	time.Sleep(late)
	complete := Figure{Metric: "complete", Portable: true}
	for i, s := range streams {
		share := 1.0
		if err := checkEchoes(s.String(), len(typed[i])); err != nil {
			share = 0
			complete.Never = fmt.Sprintf("client %d: %v", i, err)
		}
		complete.Values = append(complete.Values, share)
	}
	return complete
}
