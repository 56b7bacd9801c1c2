//go:build !linux

package terminal

import (
	"io"
	"os"
)

// A direct writes to a terminal only what that takes at once. There is none here.
type direct struct{}

func openDirect(*os.File) *direct { return nil }

// polled returns no terminal here: the runtime cannot wait for one on every system.
func polled(*os.File, int) io.ReadWriter { return nil }

func (*direct) write([]byte) int { return 0 }

func (*direct) close() {}
