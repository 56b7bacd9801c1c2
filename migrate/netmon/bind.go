package netmon

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
)

// ErrBind is wrapped where the system does not offer to bind sockets to
// interfaces, or does not permit it.
var ErrBind = errors.New("sockets cannot be bound to interfaces here")

// Bind returns a function that binds a socket to an interface, for the Control
// of a net.ListenConfig or a net.Dialer. For an empty name it does nothing.
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
