//go:build !linux

package monitor

import "net"

// checkConfinement accepts every process: the system does not tell what one may do.
func checkConfinement(*net.UnixConn, bool) error { return nil }
