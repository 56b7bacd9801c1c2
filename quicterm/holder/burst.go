//go:build linux || darwin

package holder

import (
	"os"
	"syscall"
)

// A burstReader reads from a terminal as much as there is: the kernel gives 4 KiB at a
// time, and a flood has more. It blocks for the first bytes only.
type burstReader struct {
	*os.File
	raw syscall.RawConn
}

// burstSize is how many bytes must be there at once to look for more behind them. Less was
// typed, or is the end of the output.
const burstSize = 1 << 10

// Read implements io.Reader.
func (b *burstReader) Read(p []byte) (int, error) {
	n, err := b.File.Read(p)
	for more := n; err == nil && more >= burstSize && n < len(p); n += more {
		if b.raw.Read(func(fd uintptr) bool {
			var failed error
			if more, failed = syscall.Read(int(fd), p[n:]); failed != nil {
				more = 0 // the next Read returns the error
			}
			return true
		}) != nil {
			break
		}
	}
	return n, err
}
