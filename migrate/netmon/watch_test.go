package netmon

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// The first event of a burst is told at once, the others together.
func TestJoin(t *testing.T) {
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
		var told []int64
		if err := watch(ctx, changes, func(e Event) {
			if e != Changed {
				t.Errorf("told %v, want changed", e)
			}
			told = append(told, time.Since(start).Milliseconds())
		}); err != nil {
			t.Error(err)
		}
		if want := []int64{100, 150, 200, 300, 1000}; !slices.Equal(told, want) {
			t.Errorf("told after %v ms, want %v", told, want)
		}
	})
}

// A function that takes its time is not called for each change meanwhile.
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

// Woke is told where Changed is joined to it. Here the process is not stopped,
// but the watch is.
func TestWoke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var told []Event
		watch(ctx, func(ctx context.Context, changed func()) error {
			for range 20 {
				changed()
				time.Sleep(time.Second)
			}
			<-ctx.Done()
			return nil
		}, func(e Event) {
			if told = append(told, e); len(told) == 1 {
				time.Sleep(longPause + 2*clockEvery)
			}
		})
		woke := slices.Index(told, Woke)
		if woke < 1 || woke > 2 || slices.Contains(told[woke+1:], Woke) {
			t.Errorf("told %v, want woke once, after the first", told)
		}
	})
}

// Where one source fails another is used. If all fail, the watch does.
func TestSourceFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		denied := errors.New("denied")
		denies := func(context.Context, func()) error { return denied }
		tells := func(ctx context.Context, changed func()) error {
			changed()
			<-ctx.Done()
			return nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		calls := 0
		for _, from := range []source{either(tells, denies), either(denies, tells)} {
			if err := watch(ctx, from, func(Event) { calls++ }); err != nil {
				t.Error(err)
			}
			ctx, cancel = context.WithTimeout(t.Context(), time.Second)
			defer cancel()
		}
		if calls != 2 {
			t.Errorf("%d calls, want one from each source that works", calls)
		}
		if err := watch(ctx, either(denies, denies), func(Event) {}); !errors.Is(err, denied) {
			t.Errorf("error %v, want that of the source", err)
		}
	})
}
