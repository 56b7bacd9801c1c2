//go:build !linux

package utmp

import (
	"context"
	"time"
)

// Begin does nothing.
func (*Files) Begin(context.Context, *Login, time.Time) error { return nil }

// End does nothing.
func (*Files) End(context.Context, *Login, time.Time) error { return nil }

// Record does nothing.
func (*Recorder) Record(context.Context, *Login) {}

// Follow does nothing.
func (*Recorder) Follow(context.Context, *Login) {}

// Living returns nothing.
func (*Files) Living(context.Context) ([]Login, error) { return nil, nil }
