//go:build linux || darwin

package holder

import (
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/quicterm/quicterm/quicterm/rundir"
)

// A Socket is the unix socket of a holder. It can be made again when its name
// is gone: temporary directories are cleaned now and then.
type Socket struct {
	base rundir.Base
	name string

	mu       sync.Mutex
	changed  *sync.Cond // of mu: listener or closed
	listener *net.UnixListener
	file     os.FileInfo
	closed   bool
}

// Listen makes the socket with the given name in the directory of this account.
func Listen(base rundir.Base, name string) (*Socket, error) {
	s := &Socket{base: base, name: name}
	s.changed = sync.NewCond(&s.mu)
	if err := s.Restore(); err != nil {
		return nil, err
	}
	return s, nil
}

// Restore makes the socket again if its name is gone or another's.
func (s *Socket) Restore() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return os.ErrClosed
	}
	if s.listener != nil {
		info, err := os.Lstat(s.listener.Addr().String())
		if err == nil && os.SameFile(info, s.file) {
			return nil
		}
	}
	dir, err := s.base.Make(uint32(os.Geteuid()))
	if err != nil {
		return err
	}
	path := filepath.Join(dir, s.name)
	if s.listener != nil {
		os.Remove(path) // whatever has our name
	}
	l, err := rundir.Listen(path)
	if err != nil {
		return err
	}
	file, err := os.Lstat(path)
	if err != nil {
		l.Close()
		return err
	}
	if s.listener != nil {
		s.listener.SetUnlinkOnClose(false)
		s.listener.Close()
	}
	s.listener, s.file = l, file
	s.changed.Broadcast()
	return nil
}

// Accept waits for a connection. It returns os.ErrClosed after Close.
func (s *Socket) Accept() (*net.UnixConn, error) {
	for {
		s.mu.Lock()
		l, closed := s.listener, s.closed
		s.mu.Unlock()
		if closed {
			return nil, os.ErrClosed
		}
		c, err := l.AcceptUnix()
		if err == nil {
			return c, nil
		}
		s.mu.Lock()
		replaced := s.listener != l || s.closed
		s.mu.Unlock()
		if !replaced {
			return nil, err
		}
	}
}

// Close removes the socket.
func (s *Socket) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.listener.Close()
}
