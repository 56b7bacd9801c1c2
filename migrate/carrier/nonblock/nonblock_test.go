//go:build unix

package nonblock_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/migrate/carrier/nonblock"
)

// pair returns the two ends of a pair of connected sockets.
func pair(t *testing.T, kind int) (a, b *net.UnixConn) {
	t.Helper()
	syscall.ForkLock.RLock()
	fds, err := unix.Socketpair(unix.AF_UNIX, kind, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socket")
		c, err := net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		ends[i] = c.(*net.UnixConn)
	}
	return ends[0], ends[1]
}

func newConn(t *testing.T, c syscall.Conn) *nonblock.Conn {
	t.Helper()
	n, err := nonblock.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// More than a socket keeps gets through: writes wait for the reader, and reads for the writer.
func TestCopy(t *testing.T) {
	t.Parallel()
	a, b := pair(t, unix.SOCK_STREAM)
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	done := make(chan error, 1)
	go func() {
		_, err := newConn(t, a).Write(sent)
		done <- errors.Join(err, a.CloseWrite())
	}()
	got, err := io.ReadAll(newConn(t, b))
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("read %d bytes, %v; want those %d written", len(got), err, len(sent))
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := newConn(t, b).Write([]byte("answer")); err != nil {
		t.Error(err)
	}
	a.Close()
	if _, err := newConn(t, b).Write([]byte("nobody")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("write to a socket that is closed: %v, want EPIPE", err)
	}
}

func TestCloseEndsRead(t *testing.T) {
	t.Parallel()
	a, _ := pair(t, unix.SOCK_STREAM)
	c := newConn(t, a)
	a.SetReadDeadline(time.Now())
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read after the deadline: %v", err)
	}
	a.SetReadDeadline(time.Time{})
	done := make(chan error)
	go func() {
		_, err := c.Read(make([]byte, 1))
		done <- err
	}()
	a.Close()
	if err := <-done; err == nil || err == io.EOF {
		t.Errorf("read from a socket that we have closed: %v", err)
	}
	if _, err := c.Write([]byte("x")); err == nil {
		t.Error("write to a socket that we have closed succeeds")
	}
}

func TestSend(t *testing.T) {
	t.Parallel()
	a, b := pair(t, unix.SOCK_DGRAM)
	to, sent := newConn(t, a), 0
	for {
		err := to.Send([]byte("message"))
		if err == nil {
			sent++
			continue
		}
		if err != syscall.EAGAIN && err != syscall.ENOBUFS {
			t.Errorf("send to a full queue: %v", err)
		}
		break
	}
	from, buf := newConn(t, b), make([]byte, 16)
	for range sent {
		if n, err := from.Read(buf); err != nil || string(buf[:n]) != "message" {
			t.Fatalf("received %q, %v", buf[:n], err)
		}
	}
}

func TestReadable(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	raw, err := r.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{false, true} {
		raw.Control(func(fd uintptr) {
			if got := nonblock.Readable(fd); got != want {
				t.Errorf("Readable = %v, want %v", got, want)
			}
		})
		w.Write([]byte("x"))
	}
}
