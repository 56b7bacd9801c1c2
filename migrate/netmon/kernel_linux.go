//go:build !android

package netmon

import (
	"context"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// groups are the messages of rtnetlink(7) that the kernel is asked for.
const groups = 1<<(unix.RTNLGRP_LINK-1) |
	1<<(unix.RTNLGRP_IPV4_IFADDR-1) | 1<<(unix.RTNLGRP_IPV6_IFADDR-1) |
	1<<(unix.RTNLGRP_IPV4_ROUTE-1) | 1<<(unix.RTNLGRP_IPV6_ROUTE-1)

// kernel is the source of what the kernel tells. Some systems deny it, as Android
// does from version 13 on.
func kernel(ctx context.Context, changed func()) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}); err != nil {
		unix.Close(fd)
		return os.NewSyscallError("bind", err)
	}
	return follow(ctx, os.NewFile(uintptr(fd), "netlink"), matters, changed)
}

// matters reports whether messages tell of what Lookup and Interfaces depend on,
// or cannot be understood.
func matters(b []byte) bool {
	messages, err := syscall.ParseNetlinkMessage(b)
	if err != nil {
		return true
	}
	for _, m := range messages {
		switch m.Header.Type {
		case unix.RTM_NEWLINK:
			if linkMatters(m) {
				return true
			}
		case unix.RTM_DELLINK, unix.RTM_NEWADDR, unix.RTM_DELADDR, unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
			return true
		}
	}
	return false
}

// linkMatters reports whether a message tells of more than a wireless scan or
// the port of a bridge.
func linkMatters(m syscall.NetlinkMessage) bool {
	attrs, err := attributes(m, unix.SizeofIfInfomsg)
	if err != nil {
		return true
	}
	wireless := slices.ContainsFunc(attrs, func(a syscall.NetlinkRouteAttr) bool {
		return a.Attr.Type == unix.IFLA_WIRELESS
	})
	return !wireless && m.Data[0] != unix.AF_BRIDGE
}
