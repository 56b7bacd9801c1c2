package drive

import (
	"testing"
	"testing/synctest"
	"time"
)

// A look for new sessions that has failed is soon repeated, also while a session tells of others.
func TestLookAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &follower{sessions: map[string]*followed{"1": {runs: true}}}
		for listed, want := range map[bool]time.Duration{true: seldom, false: listInterval} {
			began := time.Now()
			if err := w.await(t.Context(), listed); err != nil || time.Since(began) != want {
				t.Errorf("looked: %t, the next look is after %v, %v", listed, time.Since(began), err)
			}
		}
	})
}
