//go:build !linux

package terminal

import "os"

// A direct writes to a terminal only what that takes at once. There is none here.
type direct struct{}

func openDirect(*os.File) *direct { return nil }

func (*direct) write([]byte) int { return 0 }

func (*direct) close() {}
