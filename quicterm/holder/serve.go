//go:build linux || darwin

package holder

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/migrate/carrier/unixsock"
	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// requestTime is how long a daemon may take to send its request.
	requestTime = 10 * time.Second

	// restoreInterval is how often the socket's name is checked.
	restoreInterval = time.Minute

	// acceptPause is the time between two attempts to accept after one failed.
	acceptPause = time.Second
)

// Serve serves the daemons that connect to a socket. It returns when the session is over,
// the caller has closed the socket and all connections have ended.
func (h *Holder) Serve(s *Socket) {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { h.keepSocket(s) })
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

// keepSocket makes the socket again when its name is gone.
func (h *Holder) keepSocket(s *Socket) {
	ticker := time.NewTicker(restoreInterval)
	defer ticker.Stop()
	for {
		select {
		case <-h.end:
			return
		case <-ticker.C:
			if err := s.restore(); err != nil {
				h.log.Warn("socket is gone and cannot be made again", "error", err)
			}
		}
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
