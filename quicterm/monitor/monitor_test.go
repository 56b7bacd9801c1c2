//go:build linux || darwin

package monitor

import (
	"context"
	"testing"
)

func TestRunAllEndsWithTheFirst(t *testing.T) {
	started := make(chan struct{})
	err := runAll(t.Context(),
		func(ctx context.Context) error { close(started); <-ctx.Done(); return ctx.Err() },
		func(context.Context) error { <-started; return context.DeadlineExceeded },
	)
	if err != context.DeadlineExceeded {
		t.Errorf("%v, want the error of the first task", err)
	}
}
