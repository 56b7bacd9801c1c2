//go:build linux || darwin

package rundir

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"
)

// maxPath is the length of the longest path of a unix socket that both Linux and macOS
// accept, in bytes, without the final NUL.
const maxPath = 103

// Listen listens on a new socket that only its owner can connect to.
func Listen(path string) (*net.UnixListener, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(true)
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// Bind makes a socket that only an account can connect to, without listening on it: a process of the account listens
// on the descriptor, so that this process's user id is not the one that the other end sees. The directory must belong
// to the account of this process, as [Open] checks.
func Bind(path string, uid, gid uint32) (*os.File, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	f := os.NewFile(uintptr(fd), path)
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}); err != nil {
		f.Close()
		return nil, os.NewSyscallError("bind", err)
	}
	if err := errors.Join(os.Chmod(path, 0o600), os.Lchown(path, int(uid), int(gid))); err != nil {
		f.Close()
		os.Remove(path)
		return nil, err
	}
	return f, nil
}

// Adopt listens on a socket that another process has bound to the path.
func Adopt(f *os.File, path string) (*net.UnixListener, error) {
	defer f.Close()
	if err := syscall.Listen(int(f.Fd()), syscall.SOMAXCONN); err != nil {
		return nil, os.NewSyscallError("listen", err)
	}
	l, err := net.FileListener(f)
	if err != nil {
		return nil, err
	}
	u, ok := l.(*net.UnixListener)
	if !ok || u.Addr().String() != path {
		l.Close()
		return nil, fmt.Errorf("the descriptor is not of the socket %s", path)
	}
	return u, nil
}

// Dial connects to a socket, and refuses it if the process that listens is of none of the
// given accounts. The owner of the directory may have put anything there, also a link to a
// socket of root, whose daemon would take our requests for those of root.
func Dial(path string, uids ...uint32) (*net.UnixConn, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	peer, err := PeerUID(c)
	if err == nil && !slices.Contains(uids, peer) {
		err = fmt.Errorf("%s is served by user id %d, not %d", path, peer, uids[0])
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// PeerUID returns the user id of the process at the other end of a connection,
// as it was when it connected or listened.
func PeerUID(c *net.UnixConn) (uint32, error) { return ofPeer(c, peerUID) }

// PeerPID returns the process id of the process at the other end of a connection, as it was when it connected.
func PeerPID(c *net.UnixConn) (int, error) { return ofPeer(c, peerPID) }

func ofPeer[T any](c *net.UnixConn, get func(socket int) (T, error)) (v T, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return v, err
	}
	controlErr := raw.Control(func(fd uintptr) { v, err = get(int(fd)) })
	return v, errors.Join(controlErr, err)
}

func checkPath(path string) error {
	if len(path) > maxPath {
		return fmt.Errorf("socket path is %d bytes long, at most %d can be used: %s", len(path), maxPath, path)
	}
	return nil
}
