//go:build unix

package carrier_test

import (
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/carriertest"
)

func TestUnix(t *testing.T) {
	carriertest.Run(t, func(t *testing.T) (a, b carrier.Carrier) { return unixPair(t, true) })
}

func TestUnixWithoutDatagrams(t *testing.T) {
	carriertest.Run(t, func(t *testing.T) (a, b carrier.Carrier) { return unixPair(t, false) })
}

func unixPair(t *testing.T, datagrams bool) (a, b carrier.Carrier) {
	t.Helper()
	streamA, streamB := streamPair(t)
	var datagramsA, datagramsB *net.UnixConn
	if datagrams {
		ours, theirs, err := carrier.DatagramPair()
		if err != nil {
			t.Fatal(err)
		}
		datagramsA = ours
		if datagramsB, err = carrier.DatagramSocket(theirs); err != nil {
			t.Fatal(err)
		}
	}
	ua, err := carrier.NewUnix(streamA, datagramsA)
	if err != nil {
		t.Fatal(err)
	}
	ub, err := carrier.NewUnix(streamB, datagramsB)
	if err != nil {
		t.Fatal(err)
	}
	return ua, ub
}

func streamPair(t *testing.T) (a, b *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	conns := make([]*net.UnixConn, 2)
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "stream")
		c, err := net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		conns[i] = c.(*net.UnixConn)
	}
	return conns[0], conns[1]
}
