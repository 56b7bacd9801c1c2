//go:build !race

package nonblock

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Call makes a system call that does not block.
//
//go:uintptrescapes
func Call(trap, a1, a2, a3, a4, a5, a6 uintptr) (uintptr, syscall.Errno) {
	for {
		if n, _, err := syscall.RawSyscall6(trap, a1, a2, a3, a4, a5, a6); err != syscall.EINTR {
			return n, err
		}
	}
}

// call is Call with a pointer to the first byte of b and its length as the second and the third
// argument.
func call(trap, fd uintptr, b []byte, flags uintptr) (int, error) {
	n, err := Call(trap, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), flags, 0, 0)
	if err != 0 {
		return 0, err
	}
	return int(n), nil
}

// Read is [syscall.Read].
func Read(fd uintptr, b []byte) (int, error) { return call(unix.SYS_READ, fd, b, 0) }

// Write is [syscall.Write].
func Write(fd uintptr, b []byte) (int, error) { return call(unix.SYS_WRITE, fd, b, 0) }

// Send is [unix.SendmsgN] to where a socket is connected.
func Send(fd uintptr, b []byte, flags int) (int, error) {
	return call(unix.SYS_SENDTO, fd, b, uintptr(flags))
}

// IoctlGetTermios is [unix.IoctlGetTermios].
func IoctlGetTermios(fd uintptr, request uint) (*unix.Termios, error) {
	termios := new(unix.Termios)
	if err := ioctl(fd, uintptr(request), unsafe.Pointer(termios)); err != nil {
		return nil, err
	}
	return termios, nil
}

// IoctlGetInt is [unix.IoctlGetInt].
func IoctlGetInt(fd uintptr, request uint) (int, error) {
	value := new(int32)
	err := ioctl(fd, uintptr(request), unsafe.Pointer(value))
	return int(*value), err
}

func ioctl(fd, request uintptr, value unsafe.Pointer) error {
	if _, err := Call(unix.SYS_IOCTL, fd, request, uintptr(value), 0, 0, 0); err != 0 {
		return err
	}
	return nil
}

// Readable reports whether there is something to read, such as the end of a socket, or poll fails. The end of a
// pipe or a terminal does not count on Linux.
func Readable(fd uintptr) bool {
	poll, now := &unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}, new(unix.Timespec)
	n, err := Call(unix.SYS_PPOLL, uintptr(unsafe.Pointer(poll)), 1, uintptr(unsafe.Pointer(now)), 0, 0, 0)
	return err != 0 || n > 0 && poll.Revents&unix.POLLIN != 0
}
