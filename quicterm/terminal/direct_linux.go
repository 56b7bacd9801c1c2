package terminal

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// A direct writes to a terminal only what that takes at once. It has the terminal open once more: other programs
// that use the terminal would not expect writes to fail.
type direct struct{ fd int }

// openDirect opens a terminal once more. It returns nil if that is not possible.
func openDirect(f *os.File) *direct {
	path := fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	return &direct{fd}
}

// write returns how many bytes it has written.
func (d *direct) write(b []byte) int {
	for {
		n, err := unix.Write(d.fd, b)
		if err != unix.EINTR {
			return max(n, 0)
		}
	}
}

func (d *direct) close() { unix.Close(d.fd) }
