//go:build linux || darwin

package holder

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/migrate/carrier/unixsock"
	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Serve serves the daemons that connect to a socket. It returns when the session is over,
// the caller has closed the socket and all connections have ended.
func (h *Holder) Serve(s *Socket) {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { s.keep(h.end, h.log) })
	for {
		c, err := s.accept()
		if errors.Is(err, os.ErrClosed) {
			return
		}
		if err != nil { // such as too many open files, which may pass
			h.log.Warn("accept", "error", err)
			select {
			case <-h.end:
				return
			case <-time.After(acceptPause):
				continue
			}
		}
		wg.Go(func() {
			defer c.Close()
			if err := h.serve(c); err != nil {
				h.log.Warn("daemon refused", "error", err)
			}
		})
	}
}

// serve serves one connection of a daemon: a request, and then the frames of a carrier
// if the request makes the connection one.
func (h *Holder) serve(c *net.UnixConn) error {
	uid, err := rundir.PeerUID(c)
	if err != nil {
		return err
	}
	if uid != 0 && uid != uint32(os.Geteuid()) {
		return fmt.Errorf("connection by user id %d", uid)
	}
	c.SetDeadline(time.Now().Add(requestTime))
	datagrams, err := receiveDescriptor(c)
	if err != nil {
		return err
	}
	if datagrams != nil {
		defer datagrams.Close()
	}
	var open wire.Open
	m, err := wire.Read(c, wire.MaxMessage)
	if err == nil {
		err = m.Decode(&open)
	}
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	if m, err = wire.Read(c, wire.MaxMessage); err != nil {
		return fmt.Errorf("request: %w", err)
	}
	if m.Type == wire.TypeInspect && !h.awaitEnd(c, m) {
		return nil
	}
	answer, carry, err := h.Handle(&open, m)
	if err != nil {
		return err
	}
	if err := wire.Write(c, answer); err != nil || carry == nil {
		return err
	}
	c.SetDeadline(time.Time{})
	u, err := unixsock.New(c, datagrams)
	if err != nil {
		return err
	}
	carry(u)
	return nil
}

// receiveDescriptor reads the byte that begins a connection, and returns the datagram
// socket that is passed with it, or nil.
func receiveDescriptor(c *net.UnixConn) (*net.UnixConn, error) {
	var b [1]byte
	oob := make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := c.ReadMsgUnix(b[:], oob)
	if err != nil {
		return nil, fmt.Errorf("first byte: %w", err)
	}
	if n != 1 {
		return nil, io.ErrUnexpectedEOF
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil || len(messages) == 0 {
		return nil, err
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) == 0 {
		return nil, err
	}
	for _, fd := range fds[1:] { // alignment makes room for more than one
		unix.Close(fd)
	}
	unix.CloseOnExec(fds[0])
	return unixsock.DatagramSocket(os.NewFile(uintptr(fds[0]), "datagrams"))
}

// A Socket is the unix socket of a holder. It can be made again when its name is gone:
// systems clean temporary directories. It is made again in the account's own directory,
// also if the daemon has made the first one.
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
	if err := s.restore(); err != nil {
		return nil, err
	}
	return s, nil
}

// adopt listens on the socket that the daemon has bound to a path, in a directory where
// this account can make nothing.
func adopt(base rundir.Base, name string, f *os.File, path string) (*Socket, error) {
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

// restore makes the socket again if its name is gone or names another file.
func (s *Socket) restore() error {
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
	// It gets its name when it listens, because daemons remove sockets that do not.
	// Another file may have the name.
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

// keep makes the socket again when its name is gone.
func (s *Socket) keep(end <-chan struct{}, log *slog.Logger) {
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-end:
			return
		case <-ticker.C:
			if err := s.restore(); err != nil {
				log.Warn("socket is gone and cannot be made again", "error", err)
			}
		}
	}
}

func (s *Socket) ours() bool {
	info, err := os.Lstat(s.path)
	return err == nil && os.SameFile(info, s.file)
}

// accept blocks until a daemon connects. It returns os.ErrClosed after Close.
func (s *Socket) accept() (*net.UnixConn, error) {
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

// Close removes the socket, and makes accept return. A socket in a directory of root's
// daemon is removed by that.
func (s *Socket) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.ours() {
		os.Remove(s.path)
	}
	return s.listener.Close()
}

// SocketName returns the name of the socket of a session's holder.
func SocketName(id wire.SessionID) string { return id.String() + socketSuffix }

const socketSuffix = ".sock"

// ParseSocketName returns the session that a file name is the socket of.
func ParseSocketName(name string) (wire.SessionID, bool) {
	hex, ok := strings.CutSuffix(name, socketSuffix)
	id, err := wire.ParseSessionID(hex)
	return id, ok && err == nil
}
