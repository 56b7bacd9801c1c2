package terminal

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// A direct writes to a terminal only what that takes at once. It has the terminal open once more: other
// programs that use the terminal would not expect writes to fail.
type direct struct{ fd int }

// openDirect opens a terminal once more. It returns nil if that is not possible, or if what it opened is
// another terminal: names such as /dev/tty and /dev/console stand for different ones at different times.
func openDirect(f *os.File) *direct {
	path := fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	if !same(fd, int(f.Fd())) {
		unix.Close(fd)
		return nil
	}
	return &direct{fd}
}

// same reports whether two descriptors are of one terminal, or of one file that is no device.
func same(a, b int) bool {
	var infoA, infoB unix.Stat_t
	if unix.Fstat(a, &infoA) != nil || unix.Fstat(b, &infoB) != nil || infoA.Rdev != infoB.Rdev {
		return false
	}
	if infoA.Mode&unix.S_IFMT != unix.S_IFCHR {
		return infoA.Dev == infoB.Dev && infoA.Ino == infoB.Ino
	}
	deviceA, errA := unix.IoctlGetUint32(a, unix.TIOCGDEV)
	deviceB, errB := unix.IoctlGetUint32(b, unix.TIOCGDEV)
	return errA == nil && errB == nil && deviceA == deviceB
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
