//go:build !linux && !darwin

package tcp

import (
	"net"
	"syscall"
	"time"
)

// The system bounds what it takes to send by its own measure, and does not tell the round trip.

func bounded(c *net.TCPConn, _ syscall.RawConn, _ int) net.Conn { return c }
func setUserTimeout(syscall.RawConn, time.Duration)             {}
func roundTrip(syscall.RawConn) time.Duration                   { return 0 }
