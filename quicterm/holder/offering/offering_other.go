//go:build !linux && !darwin

package offering

import (
	"context"
	"errors"
)

func offer(context.Context, string, func()) error {
	return errors.New("no session runs on this system")
}
