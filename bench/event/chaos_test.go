//go:build linux

package event

import (
	"testing"
	"time"
)

// Chaos is the same for a seed, in order, and ends.
func TestChaos(t *testing.T) {
	const count, from, interval = 60, 5 * time.Second, time.Second
	events, again := Chaos(1, count, from, interval), Chaos(1, count, from, interval)
	if len(events) <= count || len(events) != len(again) {
		t.Fatalf("%d events, and %d", len(events), len(again))
	}
	for i, e := range events {
		if e.What != again[i].What || e.At != again[i].At {
			t.Errorf("event %d is %s at %v, and %s at %v", i, e.What, e.At, again[i].What, again[i].At)
		}
		if i > 0 && e.At < events[i-1].At {
			t.Errorf("event %d is before the one before", i)
		}
		if last := i == len(events)-1; e.Ends != last {
			t.Errorf("event %d of %d ends the chaos: %v", i, len(events), e.Ends)
		}
	}
}
