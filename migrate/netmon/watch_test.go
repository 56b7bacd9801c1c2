package netmon

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	_ "github.com/quicterm/quicterm/bench/bubble"
)

// The first event of a burst is reported at once, the others together.
func TestBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		changes := func(ctx context.Context, changed func()) error {
			for _, at := range []time.Duration{100, 101, 102, 149, 160, 300, 1000} {
				time.Sleep(time.Until(start.Add(at * time.Millisecond)))
				changed()
				synctest.Wait()
			}
			<-ctx.Done()
			return nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var reported []int64
		if err := watch(ctx, changes, func(e Event) {
			if e != Changed {
				t.Errorf("reported %v, want changed", e)
			}
			reported = append(reported, time.Since(start).Milliseconds())
		}); err != nil {
			t.Error(err)
		}
		if want := []int64{100, 150, 200, 300, 1000}; !slices.Equal(reported, want) {
			t.Errorf("reported after %v ms, want %v", reported, want)
		}
	})
}

// Changes during a slow call of the function cause one more call, not one each.
func TestSlowFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 9900*time.Millisecond)
		defer cancel()
		calls := 0
		watch(ctx, func(ctx context.Context, changed func()) error {
			for ctx.Err() == nil {
				changed()
				time.Sleep(time.Millisecond)
			}
			return nil
		}, func(Event) {
			calls++
			time.Sleep(950 * time.Millisecond)
		})
		if calls != 10 {
			t.Errorf("%d calls in 10 s, want one each second", calls)
		}
	})
}

// Changed and Woke together are reported as Woke. The test stops the watch, which
// looks to the clocks as if the process was stopped.
func TestWoke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var reported []Event
		watch(ctx, func(ctx context.Context, changed func()) error {
			for range 20 {
				changed()
				time.Sleep(time.Second)
			}
			<-ctx.Done()
			return nil
		}, func(e Event) {
			if reported = append(reported, e); len(reported) == 1 {
				time.Sleep(maxPause + 2*clockInterval)
			}
		})
		woke := slices.Index(reported, Woke)
		if woke < 1 || woke > 2 || slices.Contains(reported[woke+1:], Woke) {
			t.Errorf("reported %v, want woke once, after the first", reported)
		}
	})
}

// If one source fails, watch uses the other. If both fail, watch fails.
func TestSourceFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		denied := errors.New("denied")
		fails := func(context.Context, func()) error { return denied }
		works := func(ctx context.Context, changed func()) error {
			changed()
			<-ctx.Done()
			return nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		calls := 0
		for _, src := range []source{withFallback(works, fails), withFallback(fails, works)} {
			if err := watch(ctx, src, func(Event) { calls++ }); err != nil {
				t.Error(err)
			}
			ctx, cancel = context.WithTimeout(t.Context(), time.Second)
			defer cancel()
		}
		if calls != 2 {
			t.Errorf("%d calls, want one from each working source", calls)
		}
		if err := watch(ctx, withFallback(fails, fails), func(Event) {}); !errors.Is(err, denied) {
			t.Errorf("error %v, want that of the source", err)
		}
	})
}
