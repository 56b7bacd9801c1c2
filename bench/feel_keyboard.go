//go:build linux

package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
)

// A keyboard is where somebody types single keys, and the screen that shows their
// echoes: a line "ready", then each key once, in order.
type keyboard struct {
	x     *rig.Terminal
	ready chan struct{} // closed after that line

	mu       sync.Mutex
	controls typist // of which plain is used
	line     string // until ready
	begun    bool
	typed    []time.Time
	seen     []time.Time
	wrong    error
}

func newKeyboard() *keyboard { return &keyboard{ready: make(chan struct{})} }

// keyNumber returns the key that is typed as number n: neighbours differ.
func keyNumber(n int) byte { return byte('a' + n%26) }

// key types the next key.
func (k *keyboard) key() error {
	k.mu.Lock()
	c := keyNumber(len(k.typed))
	k.typed = append(k.typed, time.Now())
	k.mu.Unlock()
	_, err := k.x.TTY.Write([]byte{c})
	return err
}

// Write looks at what the terminal shows.
func (k *keyboard) Write(b []byte) (int, error) {
	now := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range b {
		switch {
		case !k.controls.plain(c) || k.wrong != nil:
		case !k.begun:
			if k.line += string(c); k.line == "ready\n" {
				k.begun = true
				close(k.ready)
			}
		default:
			if n := len(k.seen); n >= len(k.typed) || c != keyNumber(n) {
				k.wrong = fmt.Errorf("%q is shown as echo %d", c, n)
			}
			k.seen = append(k.seen, now)
		}
	}
	return len(b), nil
}

// shown returns what was shown before the line.
func (k *keyboard) shown() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.line
}

// await waits until all keys are shown, and returns how long each took.
func (k *keyboard) await(until time.Time) ([]time.Duration, error) {
	for {
		k.mu.Lock()
		shown, typed, wrong := len(k.seen), len(k.typed), k.wrong
		k.mu.Unlock()
		switch {
		case wrong != nil:
			return nil, wrong
		case shown == typed:
			times := make([]time.Duration, typed)
			for n := range times {
				times[n] = k.seen[n].Sub(k.typed[n])
			}
			return times, nil
		case time.Now().After(until):
			return nil, fmt.Errorf("%d of %d keys are never shown", typed-shown, typed)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
