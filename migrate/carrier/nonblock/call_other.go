//go:build unix && !(linux && !race)

package nonblock

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Read is [syscall.Read]. The race detector must see it.
func Read(fd uintptr, b []byte) (int, error) {
	return retry(func() (int, error) { return syscall.Read(int(fd), b) })
}

// Write is [syscall.Write].
func Write(fd uintptr, b []byte) (int, error) {
	return retry(func() (int, error) { return syscall.Write(int(fd), b) })
}

// Send is [unix.SendmsgN] to where a socket is connected.
func Send(fd uintptr, b []byte, flags int) (int, error) {
	return retry(func() (int, error) { return unix.SendmsgN(int(fd), b, nil, nil, flags) })
}

func retry(f func() (int, error)) (int, error) {
	for {
		if n, err := f(); err != syscall.EINTR {
			return max(n, 0), err
		}
	}
}

// IoctlGetTermios is [unix.IoctlGetTermios].
func IoctlGetTermios(fd uintptr, request uint) (*unix.Termios, error) {
	return unix.IoctlGetTermios(int(fd), request)
}

// IoctlGetInt is [unix.IoctlGetInt].
func IoctlGetInt(fd uintptr, request uint) (int, error) { return unix.IoctlGetInt(int(fd), request) }

// Readable reports whether there is something to read, such as the end of a socket, or poll fails. The end of a
// pipe or a terminal does not count on Linux.
func Readable(fd uintptr) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err != nil || n > 0 && fds[0].Revents&unix.POLLIN != 0
}
