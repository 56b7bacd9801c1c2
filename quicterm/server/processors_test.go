//go:build linux || darwin

package server

import (
	"testing"
	"testing/synctest"
	"time"
)

// One processor is used while it has time left, all while it has not, and one again after that.
func TestProcessors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inUse, used := 4, time.Duration(0)
		var p processors
		p.begin(func(n int) int {
			before := inUse
			if n > 0 {
				inUse = n
			}
			return before
		}, func() time.Duration { return used })
		for _, step := range []struct {
			what       string
			every, cpu time.Duration
			bytes      int
			want       int
		}{
			{"20 persons type", 5 * time.Millisecond, 100 * time.Microsecond, 40, 1},
			{"5000 persons type", 110 * time.Microsecond, 100 * time.Microsecond, 40, 4},
			{"20 persons type again", 5 * time.Millisecond, 100 * time.Microsecond, 40, 1},
			{"a flood", time.Millisecond, 500 * time.Microsecond, 64 << 10, 1},
			{"two floods", time.Millisecond, 900 * time.Microsecond, 64 << 10, 4},
			{"two floods on two processors", time.Millisecond, 1500 * time.Microsecond, 64 << 10, 4},
		} {
			for begun := time.Now(); time.Since(begun) < 10*lookInterval || time.Since(begun) < 3*workSpan*step.every; {
				time.Sleep(step.every)
				used += step.cpu
				p.relayed(step.bytes)
			}
			if inUse != step.want {
				t.Errorf("%s: %d processors are used, want %d", step.what, inUse, step.want)
			}
		}
	})
}
