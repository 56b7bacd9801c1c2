//go:build linux

package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
)

// typing is the time from one key to the next.
const typing = 20 * time.Millisecond

// keyText returns the key with a number: each is different, so that one that is
// lost, doubled or out of order is found.
func keyText(n int) string { return fmt.Sprintf("%06d ", n) }

// A typist types keys that are numbered from 0 and takes the time of each when it
// is typed and when it is shown. What the terminal shows is to be a line "ready",
// then the keys, in order and once each.
type typist struct {
	m     *measurement
	x     *rig.Terminal
	ready chan struct{} // closed after that line

	mu    sync.Mutex
	typed []time.Time
	seen  []time.Time
	begun bool   // ready is closed
	text  []byte // a part of the line or of a key
	esc   byte   // what kind of control sequence goes on, see plain
	wrong error
}

func newTypist(m *measurement) *typist { return &typist{m: m, ready: make(chan struct{})} }

// Write looks at what the terminal shows.
func (t *typist) Write(b []byte) (int, error) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range b {
		if !t.plain(c) || t.wrong != nil {
			continue
		}
		t.text = append(t.text, c)
		switch want := keyText(len(t.seen)); {
		case !t.begun && c == '\n':
			if t.begun = string(t.text) == "ready\n"; t.begun {
				close(t.ready)
			}
			t.text = t.text[:0]
		case !t.begun:
		case len(t.text) == len(want):
			if string(t.text) != want {
				t.wrong = fmt.Errorf("%q is shown, want %q", t.text, want)
			}
			t.seen = append(t.seen, now)
			t.text = t.text[:0]
		}
	}
	return len(b), nil
}

// plain reports whether a byte is text: not of a control sequence, of which the
// client shows those that set the title (ECMA-48, 5.4 and 5.6).
func (t *typist) plain(c byte) bool {
	switch t.esc {
	case 0:
		if c != 0x1b {
			return true
		}
		t.esc = c
	case 0x1b:
		t.esc = 0
		if c == '[' || c == ']' {
			t.esc = c
		}
	case '[':
		if c >= 0x40 && c <= 0x7e {
			t.esc = 0
		}
	case ']':
		if c == 0x1b { // of ESC \, its end
			t.esc = c
		}
		if c == 0x07 {
			t.esc = 0
		}
	}
	return false
}

// key types the next key and returns its number.
func (t *typist) key() int {
	t.mu.Lock()
	n := len(t.typed)
	t.typed = append(t.typed, time.Now())
	t.mu.Unlock()
	t.x.Send(keyText(n))
	return n
}

// keys types for a time.
func (t *typist) keys(d time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until); time.Sleep(typing) {
		t.key()
	}
}

// shown returns how many keys are shown.
func (t *typist) shown() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.wrong != nil {
		t.m.Fatal(t.wrong)
	}
	return len(t.seen)
}

// await waits until a key is shown, calls tick every 20 ms meanwhile, and returns
// when it was.
func (t *typist) await(n int, patience time.Duration, tick func()) time.Time {
	for until := time.Now().Add(patience); t.shown() <= n; {
		if time.Now().After(until) {
			t.m.Fatalf("key %d is not shown within %v: %d are", n, patience, t.shown())
		}
		time.Sleep(typing)
		tick()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen[n]
}

// rest returns the median time from key to echo of those among the last that are
// shown.
func (t *typist) rest(last int) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	var times []time.Duration
	for n := max(0, len(t.seen)-last); n < min(len(t.seen), len(t.typed)); n++ {
		times = append(times, t.seen[n].Sub(t.typed[n]))
	}
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return times[len(times)/2]
}

// check waits until all keys are shown, and then for none to be shown twice.
func (t *typist) check(patience time.Duration) {
	t.await(len(t.typed)-1, patience, func() {})
	time.Sleep(100 * time.Millisecond)
	if n := t.shown(); n != len(t.typed) || len(t.text) > 0 {
		t.m.Fatalf("%d keys were typed, %d and %q are shown", len(t.typed), n, t.text)
	}
}
