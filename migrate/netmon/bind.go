package netmon

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
)

// ErrBind is wrapped by the errors of systems that cannot bind sockets to interfaces, or do not permit it.
var ErrBind = errors.New("sockets cannot be bound to interfaces here")

// Bind returns a Control function for net.ListenConfig and net.Dialer that binds the socket to an interface: then
// packets leave through it whatever the routes say. For an empty name it does nothing.
func Bind(iface string) func(network, address string, c syscall.RawConn) error {
	return func(network, _ string, c syscall.RawConn) error {
		if iface == "" {
			return nil
		}
		var err error
		if err := c.Control(func(fd uintptr) { err = bind(fd, iface, strings.HasSuffix(network, "6")) }); err != nil {
			return err
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, fs.ErrPermission), errors.Is(err, errors.ErrUnsupported):
			return fmt.Errorf("bind to %s: %w: %w", iface, ErrBind, err)
		}
		return fmt.Errorf("bind to %s: %w", iface, err)
	}
}
