//go:build linux || darwin

package program

import (
	"io"
	"os"
	"sync"
	"syscall"

	"github.com/quicterm/quicterm/migrate/carrier/nonblock"
)

// A burstReader reads from a terminal as much as there is: the kernel gives 4 KiB at a
// time, and a flood has more. It blocks for the first bytes only.
type burstReader struct {
	*os.File
	raw  syscall.RawConn
	conn *nonblock.Conn

	mu   sync.Mutex // of each read, and of read
	read uint64     // bytes that Reads have returned
}

func newBurstReader(f *os.File) (*burstReader, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	conn, err := nonblock.New(f)
	if err != nil {
		return nil, err
	}
	return &burstReader{File: f, raw: raw, conn: conn}, nil
}

// Write implements io.Writer.
func (b *burstReader) Write(p []byte) (int, error) { return b.conn.Write(p) }

// burstSize is how many bytes must be there at once to look for more behind them. Less was
// typed, or is the end of the output.
const burstSize = 1 << 10

// Read implements io.Reader.
func (b *burstReader) Read(p []byte) (n int, err error) {
	closed := b.raw.Read(func(fd uintptr) bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		for more := burstSize; err == nil && more >= burstSize && n < len(p); n += more {
			if more, err = nonblock.Read(fd, p[n:]); more == 0 && err == nil {
				err = io.EOF
			}
		}
		if n > 0 {
			err = nil // the next Read returns it
		}
		if err == syscall.EAGAIN {
			err = nil
			return false
		}
		b.read += uint64(n)
		return true
	})
	if n == 0 && err == nil {
		err = closed
	}
	return n, err
}

// drained reports whether the terminal has nothing to read, and n bytes were read. It asks the
// kernel: a reader that gets no processor reads nothing, however much there is.
func (b *burstReader) drained(n uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.read != n {
		return false
	}
	readable := false
	b.raw.Control(func(fd uintptr) {
		// Unlike FIONREAD, poll on Linux counts what was written and has not passed the line discipline yet.
		readable = nonblock.Readable(fd)
	})
	return !readable
}

// control calls f with the descriptor of a file, which stays nonblocking.
func control(file *os.File, f func(fd int) error) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
		return err
	}
	return inner
}
