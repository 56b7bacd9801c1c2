//go:build linux || darwin

package holder

import (
	"os"
	"syscall"
)

// A burst reads as much as there is: a terminal gives 4 KiB at a time, and a
// flood has more at once. It waits for the first bytes only.
type burst struct {
	*os.File
	raw syscall.RawConn
}

// aFlood is how many bytes there are at once when more may be behind them. What
// is less was typed or is the end.
const aFlood = 1 << 10

// Read implements io.Reader.
func (b *burst) Read(p []byte) (int, error) {
	n, err := b.File.Read(p)
	for more := n; err == nil && more >= aFlood && n < len(p); n += more {
		if b.raw.Read(func(fd uintptr) bool {
			var failed error
			if more, failed = syscall.Read(int(fd), p[n:]); failed != nil {
				more = 0 // the next Read tells
			}
			return true
		}) != nil {
			break
		}
	}
	return n, err
}
