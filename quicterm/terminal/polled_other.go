//go:build !linux

package terminal

import (
	"io"
	"os"
)

// Polled returns nil here: the runtime cannot wait for a terminal on every system.
func Polled(*os.File, int) io.ReadWriteCloser { return nil }
