//go:build unix

package unixsock_test

import (
	"bytes"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/carriertest"
	"github.com/quicterm/quicterm/migrate/carrier/unixsock"
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
		ours, theirs, err := unixsock.DatagramPair()
		if err != nil {
			t.Fatal(err)
		}
		datagramsA = ours
		if datagramsB, err = unixsock.DatagramSocket(theirs); err != nil {
			t.Fatal(err)
		}
	}
	ua, err := unixsock.New(streamA, datagramsA)
	if err != nil {
		t.Fatal(err)
	}
	ub, err := unixsock.New(streamB, datagramsB)
	if err != nil {
		t.Fatal(err)
	}
	return ua, ub
}

func streamPair(t testing.TB) (a, b *net.UnixConn) {
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

// When the other end has shut its datagram socket down, the lane ends: it is not read again
// and again.
func TestUnixDatagramsShutDown(t *testing.T) {
	u, raw := rawDatagrams(t)
	if err := u.SendDatagram(nil); err != nil {
		t.Errorf("SendDatagram of nothing: %v", err)
	}
	if err := u.SendDatagram([]byte("something")); err != nil {
		t.Errorf("SendDatagram: %v", err)
	}
	buf := make([]byte, 100)
	if n, err := raw.Read(buf); err != nil || string(buf[:n]) != "something" {
		t.Errorf("the other end reads %q, %v", buf[:n], err)
	}
	if _, err := raw.Write(nil); err != nil {
		t.Fatal(err)
	}
	if b, err := u.ReceiveDatagram(); err != io.EOF {
		t.Errorf("ReceiveDatagram = %q, %v; want io.EOF", b, err)
	}
}

// rawDatagrams returns a carrier, and the other end of its datagram socket.
func rawDatagrams(t testing.TB) (*unixsock.Conn, *net.UnixConn) {
	t.Helper()
	stream, other := streamPair(t)
	ours, theirs, err := unixsock.DatagramPair()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := unixsock.DatagramSocket(theirs)
	if err != nil {
		t.Fatal(err)
	}
	u, err := unixsock.New(stream, ours)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		u.Close()
		other.Close()
		raw.Close()
	})
	return u, raw
}

// Datagrams arrive as they were sent, except those that are longer than MaxDatagram.
func FuzzDatagrams(f *testing.F) {
	f.Add([]byte{1, 0, 0, 'x'})
	f.Fuzz(func(t *testing.T, sizes []byte) {
		u, raw := rawDatagrams(t)
		raw.SetDeadline(time.Now().Add(20 * time.Second))
		content := bytes.Repeat([]byte("some content, "), 300)
		for i := 0; i+1 < len(sizes) && i < 200; i += 2 {
			n := int(sizes[i])<<8 | int(sizes[i+1])
			n = max(1, n%(2*carrier.MaxDatagram))
			if _, err := raw.Write(content[:n]); err != nil {
				t.Fatal(err)
			}
			if n > carrier.MaxDatagram {
				if _, err := raw.Write(content[:1]); err != nil {
					t.Fatal(err)
				}
				n = 1 // the long one is skipped
			}
			got, err := u.ReceiveDatagram()
			if err != nil || !bytes.Equal(got, content[:n]) {
				t.Fatalf("received %d bytes, %v; want %d", len(got), err, n)
			}
			clear(got) // it is ours
			if err := u.SendDatagram(content[:n]); err != nil {
				t.Fatal(err)
			}
			back := make([]byte, 2*carrier.MaxDatagram)
			if m, err := raw.Read(back); err != nil || !bytes.Equal(back[:m], content[:n]) {
				t.Fatalf("the other end received %d bytes, %v; want %d", m, err, n)
			}
		}
	})
}
