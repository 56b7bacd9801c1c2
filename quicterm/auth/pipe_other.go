//go:build !windows

package auth

import (
	"context"
	"errors"
	"net"
)

func isPipe(string) bool { return false }

func dialPipe(context.Context, string) (net.Conn, error) { return nil, errors.ErrUnsupported }
