//go:build linux || darwin

// Package socket is the unix socket of a holder: the holder's end, which is made again when its name is gone, and the
// requests of a daemon to it. It does not interpret the messages.
package socket

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A Socket is the unix socket of a holder. It can be made again when its name is gone: systems clean temporary
// directories. It is made again in the account's own directory, also if the daemon has made the first one.
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

// Adopt listens on the socket that the daemon has bound to a path, in a directory where
// this account can make nothing.
func Adopt(base rundir.Base, name string, f *os.File, path string) (*Socket, error) {
	l, err := rundir.Adopt(f, path)
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	file, err := os.Lstat(path)
	if err != nil {
		l.Close()
		return nil, err
	}
	return &Socket{base: base, name: name, listener: l, path: path, file: file}, nil
}

// Restore makes the socket again if its name is gone or names another file.
func (s *Socket) Restore() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return os.ErrClosed
	}
	if s.listener != nil && s.ours() {
		return nil
	}
	dir, err := s.base.Make()
	if err != nil {
		return err
	}
	// It gets its name when it listens, because daemons remove sockets that do not. Another file may have the name.
	path, early := filepath.Join(dir, s.name), filepath.Join(dir, strings.TrimSuffix(s.name, suffix)+".soon")
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

func (s *Socket) ours() bool {
	info, err := os.Lstat(s.path)
	return err == nil && os.SameFile(info, s.file)
}

// Path returns where the socket is.
func (s *Socket) Path() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.path
}

// Accept blocks until a daemon connects. It returns os.ErrClosed after Close.
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

// Close removes the socket, and makes Accept return. A socket in a directory of root's daemon is removed by that.
func (s *Socket) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.ours() {
		os.Remove(s.path)
	}
	return s.listener.Close()
}

// Name returns the name of the socket of a session's holder.
func Name(id wire.SessionID) string { return id.String() + suffix }

const suffix = ".sock"

// ParseName returns the session that a file name is the socket of.
func ParseName(name string) (wire.SessionID, bool) {
	hex, ok := strings.CutSuffix(name, suffix)
	id, err := wire.ParseSessionID(hex)
	return id, ok && err == nil
}
