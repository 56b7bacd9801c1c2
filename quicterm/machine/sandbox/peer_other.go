//go:build !linux

package sandbox

import "net"

// CheckPeer accepts every process: the system does not tell what one may do.
func CheckPeer(*net.UnixConn, bool) error { return nil }
