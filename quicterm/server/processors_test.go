package server

import (
	"testing"
	"testing/synctest"
	"time"
)

// One processor is used while little is relayed, all while much is, and one again after that.
func TestProcessors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		used := 4
		var p processors
		p.begin(func(n int) int {
			before := used
			if n > 0 {
				used = n
			}
			return before
		})
		for _, step := range []struct {
			what  string
			every time.Duration
			bytes int
			want  int
		}{
			{"20 persons type", 5 * time.Millisecond, 40, 1},
			{"500 persons type", 200 * time.Microsecond, 40, 4},
			{"20 persons type again", 5 * time.Millisecond, 40, 1},
			{"a flood", time.Millisecond, 64 << 10, 4},
			{"a slow flood", 50 * time.Millisecond, 64 << 10, 1},
		} {
			for range 3 * workSpan {
				time.Sleep(step.every)
				p.relayed(step.bytes)
			}
			if used != step.want {
				t.Errorf("%s: %d processors are used, want %d", step.what, used, step.want)
			}
		}
	})
}
