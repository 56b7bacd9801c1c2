//go:build linux || darwin

package holder

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/quicterm/quicterm/quicterm/rundir"
)

// A Socket is the unix socket of a holder. It can be made again when its name
// is gone: temporary directories are cleaned now and then.
type Socket struct {
	base rundir.Base
	name string

	mu       sync.Mutex
	listener *net.UnixListener
	path     string
	file     os.FileInfo // at path
	closed   bool
}

// Listen makes the socket with the given name in the directory of this account.
func Listen(base rundir.Base, name string) (*Socket, error) {
	s := &Socket{base: base, name: name}
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
	if s.listener != nil && s.ours() {
		return nil
	}
	dir, err := s.base.Make(uint32(os.Geteuid()))
	if err != nil {
		return err
	}
	// It gets its name when it listens: daemons remove those that do not. The
	// name may be that of something else before.
	path, early := filepath.Join(dir, s.name), filepath.Join(dir, strings.TrimSuffix(s.name, socketSuffix)+".soon")
	os.Remove(early)
	l, err := rundir.Listen(early)
	if err != nil {
		return err
	}
	l.SetUnlinkOnClose(false)
	file, err := os.Lstat(early)
	if err == nil {
		err = os.Rename(early, path)
	}
	if err != nil {
		l.Close()
		os.Remove(early)
		return err
	}
	if s.listener != nil {
		s.listener.Close()
	}
	s.listener, s.path, s.file = l, path, file
	return nil
}

// ours reports whether the socket's name is its own.
func (s *Socket) ours() bool {
	info, err := os.Lstat(s.path)
	return err == nil && os.SameFile(info, s.file)
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
	if s.ours() {
		os.Remove(s.path)
	}
	return s.listener.Close()
}
