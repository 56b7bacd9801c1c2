//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package netmon

import (
	"context"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kernel is the source of what the kernel tells, as in route(4).
func kernel(ctx context.Context, changed func()) error {
	syscall.ForkLock.RLock()
	fd, err := unix.Socket(unix.AF_ROUTE, unix.SOCK_RAW, unix.AF_UNSPEC)
	if err == nil {
		unix.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return os.NewSyscallError("fcntl", err)
	}
	return follow(ctx, os.NewFile(uintptr(fd), "route"), matters, changed)
}

// matters reports whether a message tells of what Lookup and Interfaces depend
// on, or cannot be understood.
func matters(b []byte) bool {
	const kind = unsafe.Offsetof(unix.RtMsghdr{}.Type) // the same in all messages
	if len(b) <= int(kind) {
		return true
	}
	switch b[kind] {
	case unix.RTM_IFINFO, unix.RTM_NEWADDR, unix.RTM_DELADDR:
		return true
	case unix.RTM_ADD, unix.RTM_DELETE, unix.RTM_CHANGE:
		var header unix.RtMsghdr
		if len(b) < int(unsafe.Sizeof(header)) {
			return true
		}
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&header)), unsafe.Sizeof(header)), b)
		return header.Flags&unix.RTF_LLINFO == 0 // else it is a neighbour
	}
	return false
}
