//go:build android || !(linux || darwin || dragonfly || freebsd || netbsd || openbsd || windows)

package netmon

import (
	"context"
	"errors"
)

// kernel is no source here.
func kernel(context.Context, func()) error { return errors.ErrUnsupported }
