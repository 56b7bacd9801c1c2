package terminal

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/migrate/carrier/nonblock"
)

// Polled opens a terminal or a pipe once more, such that its reads or writes, as the mode says, wait in the poller of
// the runtime and keep no thread: other programs that have it open would not expect calls to fail. It returns nil if
// that is not possible, or if what it opened is another terminal: names such as /dev/tty and /dev/console stand for
// different ones at different times. It is closed by the garbage collector, if not before.
func Polled(f *os.File, mode int) io.ReadWriteCloser {
	path := fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	fd, err := unix.Open(path, mode|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	again := os.NewFile(uintptr(fd), f.Name())
	c, err := nonblock.New(again)
	if err != nil || !same(fd, int(f.Fd())) {
		again.Close()
		return nil
	}
	return struct {
		*nonblock.Conn
		io.Closer
	}{c, again}
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
