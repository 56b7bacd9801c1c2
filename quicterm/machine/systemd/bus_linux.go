package systemd

import (
	"context"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"
)

// answerTime bounds how long a service of the system may take for all that is asked on a
// connection. A manager that reloads its units answers nothing for seconds.
const answerTime = 10 * time.Second

// dial connects to a socket of the system, and tells which process made it.
func dial(ctx context.Context, socket string) (*net.UnixConn, *unix.Ucred, error) {
	d := net.Dialer{Timeout: answerTime}
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, nil, err
	}
	c := conn.(*net.UnixConn)
	raw, err := c.SyscallConn()
	var peer *unix.Ucred
	var peerErr error
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			peer, peerErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		})
	}
	if err == nil {
		err = peerErr
	}
	if err == nil {
		err = c.SetDeadline(time.Now().Add(answerTime))
	}
	if err != nil {
		c.Close()
		return nil, nil, err
	}
	return c, peer, nil
}

// authenticate returns a D-Bus connection, which takes c over and ends with ctx.
func authenticate(ctx context.Context, c *net.UnixConn, signals dbus.SignalHandler) (*dbus.Conn, error) {
	options := []dbus.ConnOption{dbus.WithContext(ctx)}
	if signals != nil {
		options = append(options, dbus.WithSignalHandler(signals))
	}
	conn, err := dbus.DialUnix(c, options...)
	if err != nil {
		c.Close()
		return nil, err
	}
	if err := conn.Auth([]dbus.Auth{dbus.AuthExternal(strconv.Itoa(os.Geteuid()))}); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}
