package gate_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	_ "github.com/quicterm/quicterm/bench/bubble"
	"github.com/quicterm/quicterm/quicterm/session/gate"
)

func TestWaitReturnsWhenDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate.Gate
		n, passed := 0, 0
		for range 3 {
			go func() {
				g.Lock()
				defer g.Unlock()
				if err := g.Wait(t.Context(), func() bool { return n == 2 }); err != nil {
					t.Error(err)
				}
				passed++
			}()
		}
		for range 2 {
			synctest.Wait()
			g.Lock()
			if passed != 0 {
				t.Errorf("%d waiters passed before the condition holds", passed)
			}
			n++
			g.Changed()
			g.Unlock()
		}
		synctest.Wait()
		if passed != 3 {
			t.Errorf("%d waiters passed, want 3", passed)
		}
	})
}

func TestWaitEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate.Gate
		late := errors.New("late")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, late)
		defer cancel()
		start := time.Now()
		g.Lock()
		defer g.Unlock()
		if err := g.Wait(ctx, func() bool { return false }); !errors.Is(err, late) {
			t.Errorf("Wait = %v, want the context's cause", err)
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("Wait took %v", took)
		}
		if err := g.Wait(ctx, func() bool { return true }); err != nil {
			t.Errorf("Wait for what is true = %v", err)
		}
	})
}
