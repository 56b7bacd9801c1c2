//go:build !linux && !darwin

package tcp

import (
	"net"
	"syscall"
	"time"
)

// The system bounds what it takes by its own measure, and does not tell what a path does.

func bounded(c *net.TCPConn, _ syscall.RawConn, _ int) net.Conn { return c }
func setUserTimeout(syscall.RawConn, time.Duration)             {}
func setReadBuffer(syscall.RawConn, int)                        {}
func hungUp(syscall.RawConn) bool                               { return false }
func roundTrip(syscall.RawConn) time.Duration                   { return 0 }
