//go:build linux || darwin

// Package systemd is what a daemon has of a service manager. It takes sockets over from it, and keeps sockets with it
// while this process restarts: so no other account can take their ports meanwhile. It puts processes that outlive the
// daemon into control groups of their own, and tells what becomes of them at a logout. It follows sd_listen_fds(3),
// sd_notify(3) and org.freedesktop.systemd1(5). Without a service manager it does nothing.
package systemd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// firstFD is the descriptor of the first socket that is passed.
const firstFD = 3

// maxFDs bounds how many sockets are taken over: a daemon has a few.
const maxFDs = 64

// A Conn is a bound *net.UDPConn, or a *net.TCPListener.
type Conn interface {
	syscall.Conn
	io.Closer
}

// A Manager is the service manager of this process. A nil Manager is none.
type Manager struct {
	notify   string        // address of its socket; may be empty
	watchdog time.Duration // within which it wants to hear from this process, or 0
}

// Start returns the manager that the environment names, and the sockets that it has
// passed. It must be called before this process starts another one, which could inherit
// them. The error tells which sockets cannot be used: they are closed.
func Start() (*Manager, []Conn, error) {
	m := &Manager{notify: os.Getenv("NOTIFY_SOCKET")}
	if pid := os.Getenv("WATCHDOG_PID"); pid == "" || pid == strconv.Itoa(os.Getpid()) {
		usec, _ := strconv.ParseUint(os.Getenv("WATCHDOG_USEC"), 10, 40) // at most 12 days
		m.watchdog = time.Duration(usec) * time.Microsecond
	}
	if os.Getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) || os.Getenv("LISTEN_FDS") == "" {
		return m, nil, nil // there are none, or they are for another process
	}
	n, err := strconv.Atoi(os.Getenv("LISTEN_FDS"))
	if err != nil || n < 0 || n > maxFDs {
		return m, nil, fmt.Errorf("LISTEN_FDS is %q: it must be a number up to %d", os.Getenv("LISTEN_FDS"), maxFDs)
	}
	var sockets []Conn
	var failures []error
	for i := range n {
		fd := firstFD + i
		unix.CloseOnExec(fd)
		conn, err := takeOver(fd)
		if err != nil {
			failures = append(failures, fmt.Errorf("descriptor %d that the service manager has passed: %w", fd, err))
			continue
		}
		sockets = append(sockets, conn)
	}
	return m, sockets, errors.Join(failures...)
}

// takeOver takes a descriptor over, which must be of a bound UDP socket or of a TCP socket that listens.
func takeOver(fd int) (Conn, error) {
	f := os.NewFile(uintptr(fd), "passed")
	defer f.Close()
	if listens, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err == nil && listens != 0 {
		l, err := net.FileListener(f) // another descriptor of the same socket
		if err != nil {
			return nil, err
		}
		if listener, ok := l.(*net.TCPListener); ok {
			return listener, nil
		}
		l.Close()
		return nil, errors.New("it listens, and not on TCP")
	}
	c, err := net.FilePacketConn(f)
	if err != nil {
		return nil, err
	}
	conn, ok := c.(*net.UDPConn)
	if !ok {
		c.Close()
		return nil, errors.New("it is not a UDP socket")
	}
	if addr, ok := conn.LocalAddr().(*net.UDPAddr); !ok || addr.Port == 0 {
		conn.Close()
		return nil, errors.New("it is not bound to a port")
	}
	return conn, nil
}

// Keep has the manager keep a socket, under a name, while this process restarts: the next one is passed it.
func (m *Manager) Keep(name string, c Conn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	// The manager would drop a socket that has an error to report.
	state := "FDSTORE=1\nFDPOLL=0\nFDNAME=" + name
	var sendErr error
	if err := raw.Control(func(fd uintptr) { sendErr = m.send(state, unix.UnixRights(int(fd))) }); err != nil {
		return err
	}
	return sendErr
}

// Forget has the manager close the sockets that it keeps with a name.
func (m *Manager) Forget(name string) error {
	return m.send("FDSTOREREMOVE=1\nFDNAME="+name, nil)
}

// Ready tells the manager that this process serves.
func (m *Manager) Ready() error { return m.send("READY=1", nil) }

// Stopping tells the manager that this process ends.
func (m *Manager) Stopping() error { return m.send("STOPPING=1", nil) }

// Watch tells the manager that this process is alive, as often as it wants that, each time after check has returned.
// If check blocks, the manager restarts the process. Watch returns when ctx ends.
func (m *Manager) Watch(ctx context.Context, check func()) error {
	if m == nil || m.watchdog == 0 {
		<-ctx.Done()
		return nil
	}
	ticker := time.NewTicker(m.watchdog / 2)
	defer ticker.Stop()
	for {
		check()
		m.send("WATCHDOG=1", nil) // if it fails, the next one may not
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (m *Manager) send(state string, rights []byte) error {
	if m == nil || m.notify == "" {
		return nil
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: m.notify, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("service manager: %w", err)
	}
	defer c.Close()
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var sendErr error
	// It does not wait for a manager that does not read.
	if err := raw.Control(func(fd uintptr) {
		sendErr = unix.Sendmsg(int(fd), []byte(state), rights, nil, unix.MSG_DONTWAIT)
	}); err != nil {
		return err
	}
	return os.NewSyscallError("tell the service manager", sendErr)
}
