package netmon

import (
	"testing"
	"time"
)

func TestClocks(t *testing.T) {
	type reading struct {
		wall, mono time.Duration // since the previous reading
		jumped     bool
	}
	const s, ms = time.Second, time.Millisecond
	for name, readings := range map[string][]reading{
		"nothing happens":              {{s, s, false}, {s, s, false}},
		"a busy machine reads late":    {{4 * s, 4 * s, false}},
		"the clock is slewed":          {{1400 * ms, s, false}, {1400 * ms, s, false}, {600 * ms, s, false}},
		"a sleep, reported once":       {{s, s, false}, {3600 * s, s, true}, {s, s, false}},
		"a sleep between two readings": {{2600 * ms, s, true}},
		"the clock is set forward":     {{61 * s, s, true}, {s, s, false}},
		"the clock is set back":        {{-60 * s, s, true}, {s, s, false}},
		"both clocks run during sleep": {{3600 * s, 3600 * s, true}, {s, s, false}},
	} {
		t.Run(name, func(t *testing.T) {
			wall, mono := time.Unix(1e9, 0), time.Hour
			c := clocks{wall, mono}
			for i, r := range readings {
				wall, mono = wall.Add(r.wall), mono+r.mono
				if got := c.update(wall, mono); got != r.jumped {
					t.Errorf("reading %d: jumped %v, want %v", i, got, r.jumped)
				}
			}
		})
	}
}
