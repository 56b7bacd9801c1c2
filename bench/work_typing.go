//go:build linux

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/quicterm/quicterm/bench/rig"
)

// keystrokes is somebody who types, at an even pace, to a program that answers each
// key twice. It yields, in milliseconds from the key: "feel", until its glyph is at
// its place on the screen, which a client that predicts may show by itself; and
// "truth", until the count of keys is there too, which only the server knows.
//
// Where something bad happens, "back" is the truth of the first key after it is over.
type keystrokes struct {
	keys int           // of each client
	pace time.Duration // from one to the next
}

const (
	// typedBefore is how many keys do not count: both ends learn what the path is like,
	// and quic-go looks for larger packets on loopback.
	typedBefore = 20

	// The keys are on the screen from this row on, as wide as this. More than fit would
	// be a text that scrolls.
	textTop   = 4
	textWidth = 70
	textKeys  = (screenRows - textTop) * textWidth
)

// place returns where the glyph of a key is.
func place(n int) (row, column int) { return textTop + n/textWidth, n % textWidth }

func (k keystrokes) shell(self string) string { return "exec " + self + " echo" }

// echoCommandLine is the program that answers keys.
func echoCommandLine() *cobra.Command {
	return &cobra.Command{
		Use:    "echo",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(*cobra.Command, []string) error { return echo(os.Stdin, os.Stdout) },
	}
}

// echo answers each key with its glyph where the cursor is, and then with the count of
// keys in the first row, as a mark: 1 before the first.
func echo(in, out *os.File) error {
	old, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return err
	}
	defer term.Restore(int(in.Fd()), old)
	answer := func(n int) string {
		row, column := place(n)
		return fmt.Sprintf("\x1b[1;1H<%d>\x1b[%d;%dH", n+1, row+1, column+1)
	}
	if _, err := out.WriteString("\x1b[H\x1b[2J" + answer(0)); err != nil {
		return err
	}
	buf := make([]byte, 1024)
	for n := 0; n < textKeys; {
		got, err := in.Read(buf)
		if err != nil {
			return err
		}
		var b strings.Builder
		for _, c := range buf[:min(got, textKeys-n)] {
			n++
			b.WriteByte(c)
			b.WriteString(answer(n))
		}
		if _, err := out.WriteString(b.String()); err != nil {
			return err
		}
	}
	return nil
}

// counted returns the mark in the first row, or 0.
func counted(v view) int {
	text := v.row(0)
	if len(text) < 3 || text[0] != '<' || text[len(text)-1] != '>' {
		return 0
	}
	n, _ := strconv.Atoi(text[1 : len(text)-1])
	return n
}

// A stroke is a key that was typed.
type stroke struct {
	at          time.Time
	feel, truth <-chan time.Time
}

func (k keystrokes) run(j *job) []figure {
	typed := make([][]stroke, len(j.clients))
	start := time.Now()
	for n := range typedBefore + k.keys {
		if n == typedBefore {
			start = j.begin().Add(-typedBefore * k.pace)
		}
		for i, c := range j.clients {
			at := time.Duration(n)*k.pace + time.Duration(i)*k.pace/time.Duration(len(j.clients))
			time.Sleep(time.Until(start.Add(at)))
			typed[i] = append(typed[i], c.stroke(n))
		}
	}
	time.Sleep(time.Until(j.started.Add(time.Duration(k.keys) * k.pace)))
	j.end()

	feel := figure{metric: "feel", unit: "ms", portable: true}
	truth := figure{metric: "truth", unit: "ms", portable: true}
	back := figure{metric: "back", unit: "ms", portable: true}
	until := time.Now().Add(rig.Patience)
	missing := 0
	for i, strokes := range typed {
		over := j.overFor(j.clients[i])
		for _, s := range strokes[typedBefore:] {
			felt, known := await(s.feel, until), await(s.truth, until)
			if felt.IsZero() || known.IsZero() {
				missing++
				if len(j.ends()) > 0 {
					continue
				}
				felt, known = until, until
			}
			feel.add(felt.Sub(s.at), j.since(s.at))
			truth.add(known.Sub(s.at), j.since(s.at))
			if len(over) > 0 && s.at.After(over[0]) {
				over = over[1:]
				back.add(known.Sub(s.at), j.since(s.at))
			}
		}
	}
	why := fmt.Sprintf("%d of %d keys are not answered within %v", missing, k.keys*len(j.clients), rig.Patience)
	switch {
	case missing == 0:
	case len(j.ends()) > 0:
		feel.never, truth.never, back.never = why, why, why
	default: // they are late, and more so than it seems
		why += ", and count as if they were then"
		feel.note, truth.note = why, why
	}
	if len(j.ends()) == 0 {
		return []figure{feel, truth}
	}
	return []figure{feel, truth, back}
}

// stroke types key number n.
func (c *client) stroke(n int) stroke {
	key := keyNumber(n)
	row, column := place(n)
	s := stroke{
		feel:  c.screen.watch(func(v view) bool { return v.at(row, column) == rune(key) }),
		truth: c.screen.watch(func(v view) bool { return counted(v) > n+1 }),
		at:    time.Now(),
	}
	c.x.TTY.Write([]byte{key}) // if the client is gone, its keys are not answered
	return s
}

// add appends a time to a figure in milliseconds.
func (f *figure) add(d time.Duration, at float64) {
	f.values = append(f.values, inMS(d))
	f.at = append(f.at, at)
}

// await returns when something was seen, or the zero time if it is not until then.
func await(seen <-chan time.Time, until time.Time) time.Time {
	select {
	case at := <-seen:
		return at
	default:
	}
	select {
	case at := <-seen:
		return at
	case <-time.After(time.Until(until)):
		return time.Time{}
	}
}
