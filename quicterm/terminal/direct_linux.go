package terminal

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/migrate/carrier/nonblock"
)

// A direct writes to a terminal only what that takes at once. It has the terminal open once more: other
// programs that use the terminal would not expect writes to fail.
type direct struct{ fd int }

// openDirect opens a terminal once more. It returns nil if that is not possible, or if what it opened is
// another terminal: names such as /dev/tty and /dev/console stand for different ones at different times.
func openDirect(f *os.File) *direct {
	fd, ok := openAgain(f, unix.O_WRONLY)
	if !ok {
		return nil
	}
	return &direct{fd}
}

// polled returns a terminal whose reads or writes, as the mode says, wait in the poller of the runtime and
// keep no thread. It returns nil where openDirect does. It is closed by the garbage collector.
func polled(f *os.File, mode int) io.ReadWriter {
	fd, ok := openAgain(f, mode)
	if !ok {
		return nil
	}
	c, err := nonblock.New(os.NewFile(uintptr(fd), f.Name()))
	if err != nil {
		return nil
	}
	return c
}

// openAgain opens a terminal once more, in nonblocking mode.
func openAgain(f *os.File, mode int) (fd int, ok bool) {
	path := fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	fd, err := unix.Open(path, mode|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, false
	}
	if !same(fd, int(f.Fd())) {
		unix.Close(fd)
		return 0, false
	}
	return fd, true
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
	n, _ := nonblock.Write(uintptr(d.fd), b)
	return n
}

func (d *direct) close() { unix.Close(d.fd) }
