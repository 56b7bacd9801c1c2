//go:build unix && !linux

package unixsock

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// packets is the type of the sockets for datagrams: macOS has no other for unix sockets.
const packets = unix.SOCK_DGRAM

// RefuseDescriptors does nothing: this system cannot refuse them.
func RefuseDescriptors(syscall.Conn) {}
