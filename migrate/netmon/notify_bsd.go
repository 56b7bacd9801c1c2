//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package netmon

import (
	"context"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// notifications is the source of the kernel's messages, see route(4).
func notifications(ctx context.Context, changed func()) error {
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
	return readMessages(ctx, os.NewFile(uintptr(fd), "route"), relevant, changed)
}

// relevant reports whether a message may change what Lookup and Interfaces return.
// A message that cannot be parsed is relevant.
func relevant(b []byte) bool {
	const typeOffset = unsafe.Offsetof(unix.RtMsghdr{}.Type) // the same in all messages
	if len(b) <= int(typeOffset) {
		return true
	}
	switch b[typeOffset] {
	case unix.RTM_IFINFO, unix.RTM_NEWADDR, unix.RTM_DELADDR:
		return true
	case unix.RTM_ADD, unix.RTM_DELETE, unix.RTM_CHANGE:
		var header unix.RtMsghdr
		if len(b) < int(unsafe.Sizeof(header)) {
			return true
		}
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&header)), unsafe.Sizeof(header)), b)
		return header.Flags&unix.RTF_LLINFO == 0 // set: the route is a neighbour's link address
	}
	return false
}
