//go:build !linux

package quic

import "net"

// forbidFragments does nothing: large packets may arrive that QUIC cannot send.
func forbidFragments(net.PacketConn) error { return nil }
