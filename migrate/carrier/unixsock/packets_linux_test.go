package unixsock_test

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/migrate/carrier/unixsock"
)

// What has an end of a lane reaches the other end by it, and no other socket of the machine.
func TestDatagramsReachOnlyTheOtherEnd(t *testing.T) {
	to := &unix.SockaddrUnix{Name: "@quicterm-test-" + t.Name()}
	other, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: to.Name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	ours, theirs, err := unixsock.DatagramPair()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	defer theirs.Close()
	unix.Sendto(int(theirs.Fd()), []byte("from the lane"), unix.MSG_DONTWAIT, to) // an address is ignored or an error
	if err := unix.Sendto(int(theirs.Fd()), []byte("to the other end"), unix.MSG_DONTWAIT, nil); err != nil {
		t.Fatal(err)
	}
	other.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	b := make([]byte, 100)
	if n, err := other.Read(b); err == nil {
		t.Errorf("another socket got %q", b[:n])
	}
}

// A carrier takes no descriptors on either of its sockets.
func TestNoDescriptors(t *testing.T) {
	_, raw := rawDatagrams(t)
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	c, err := raw.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Control(func(fd uintptr) {
		if _, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSRIGHTS); err != nil {
			t.Skip("the kernel cannot refuse descriptors: ", err)
		}
		if err := unix.Sendmsg(int(fd), []byte("x"), unix.UnixRights(int(file.Fd())), nil, 0); !errors.Is(err, unix.EPERM) {
			t.Errorf("a descriptor is sent: %v", err)
		}
	}); err != nil {
		t.Fatal(err)
	}
}
