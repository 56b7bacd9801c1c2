// Package pty opens terminals, which wasip1 has not.
package pty

import (
	"errors"
	"os"
)

func Open() (pty, tty *os.File, err error) { return nil, nil, errors.ErrUnsupported }
