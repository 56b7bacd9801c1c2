//go:build !android

package netmon

import (
	"context"
	"os"

	"golang.org/x/sys/unix"
)

// groups selects the messages that the kernel sends, see rtnetlink(7).
const groups = 1<<(unix.RTNLGRP_LINK-1) |
	1<<(unix.RTNLGRP_IPV4_IFADDR-1) | 1<<(unix.RTNLGRP_IPV6_IFADDR-1) |
	1<<(unix.RTNLGRP_IPV4_ROUTE-1) | 1<<(unix.RTNLGRP_IPV6_ROUTE-1)

// notifications is the source of the kernel's messages. A sandbox may deny it. Some messages, such as those of a
// wireless scan, change nothing: to look costs less than to parse them.
func notifications(ctx context.Context, changed func()) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}); err != nil {
		unix.Close(fd)
		return os.NewSyscallError("bind", err)
	}
	return readMessages(ctx, os.NewFile(uintptr(fd), "netlink"), func([]byte) bool { return true }, changed)
}
