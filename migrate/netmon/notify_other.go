//go:build android || !(linux || darwin || dragonfly || freebsd || netbsd || openbsd || windows)

package netmon

import (
	"context"
	"errors"
)

// notifications fails: this system has none. Android denies netlink from version 13 on.
func notifications(context.Context, func()) error { return errors.ErrUnsupported }
