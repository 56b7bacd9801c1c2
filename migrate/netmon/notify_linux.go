//go:build !android

package netmon

import (
	"context"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// groups selects the messages that the kernel sends, see rtnetlink(7).
const groups = 1<<(unix.RTNLGRP_LINK-1) |
	1<<(unix.RTNLGRP_IPV4_IFADDR-1) | 1<<(unix.RTNLGRP_IPV6_IFADDR-1) |
	1<<(unix.RTNLGRP_IPV4_ROUTE-1) | 1<<(unix.RTNLGRP_IPV6_ROUTE-1)

// notifications is the source of the kernel's messages. A sandbox may deny it.
func notifications(ctx context.Context, changed func()) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}); err != nil {
		unix.Close(fd)
		return os.NewSyscallError("bind", err)
	}
	return readMessages(ctx, os.NewFile(uintptr(fd), "netlink"), relevant, changed)
}

// relevant reports whether messages may change what Lookup and Interfaces return.
// Messages that cannot be parsed are relevant.
func relevant(b []byte) bool {
	messages, err := syscall.ParseNetlinkMessage(b)
	if err != nil {
		return true
	}
	for _, m := range messages {
		switch m.Header.Type {
		case unix.RTM_NEWLINK:
			if linkRelevant(m) {
				return true
			}
		case unix.RTM_DELLINK, unix.RTM_NEWADDR, unix.RTM_DELADDR, unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
			return true
		}
	}
	return false
}

// linkRelevant reports whether an RTM_NEWLINK message is about more than a wireless
// scan or the port of a bridge.
func linkRelevant(m syscall.NetlinkMessage) bool {
	attrs, err := attributes(m, unix.SizeofIfInfomsg)
	if err != nil {
		return true
	}
	wireless := slices.ContainsFunc(attrs, func(a syscall.NetlinkRouteAttr) bool {
		return a.Attr.Type == unix.IFLA_WIRELESS
	})
	return !wireless && m.Data[0] != unix.AF_BRIDGE
}
