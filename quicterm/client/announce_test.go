//go:build linux || darwin

package client

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// Each arrival is announced once, though notices come more than once, and while the terminal is
// stopped only so many wait.
func TestArrivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		s := &Session{others: make(map[uint64]bool), linkChanged: make(chan struct{}, 1)}
		s.streams.Joined = func(p wire.Presence) { got = append(got, "joined "+p.Client) }
		s.streams.Left = func(p wire.Presence) { got = append(got, "left "+p.Client) }
		go s.announce(t.Context())
		arrived := func(text string, joined bool) {
			s.gate.Lock()
			s.arrivedLocked(text, joined)
			s.gate.Unlock()
		}
		for range 2 {
			arrived("1 2 ann", true)
			arrived("2 1 bob", true)
		}
		synctest.Wait()
		for range 2 {
			arrived("1 2 ann", false)
		}
		arrived("nonsense", true)
		arrived("3 2 ann", true)
		synctest.Wait()
		if want := []string{"joined ann", "joined bob", "left ann", "joined ann"}; !slices.Equal(got, want) {
			t.Errorf("announced %q, want %q", got, want)
		}
		s.gate.Lock()
		for n := range uint64(2 * maxOthers) {
			s.arrivedLocked(fmt.Sprint(n, " 2 many"), true)
		}
		if len(s.others) != maxOthers || len(s.arrivals) != maxArrivals {
			t.Errorf("%d others, %d arrivals", len(s.others), len(s.arrivals))
		}
		s.gate.Unlock()
	})
}

// That a session is being ended is announced once, and printable.
func TestEnding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		s := &Session{linkChanged: make(chan struct{}, 1)}
		s.streams.Ending = func(by string) { got = append(got, by) }
		go s.announce(t.Context())
		for range 2 {
			s.gate.Lock()
			s.endingLocked("root: kernel\x1b update")
			s.gate.Unlock()
			synctest.Wait()
			wake(s.linkChanged)
			synctest.Wait()
		}
		if want := []string{"root: kernel? update"}; !slices.Equal(got, want) {
			t.Errorf("announced %q, want %q", got, want)
		}
	})
}
