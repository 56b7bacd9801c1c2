//go:build linux || darwin

package holder

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier/unixsock"
	"github.com/quicterm/quicterm/quicterm/holder/socket"
	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Serve serves the daemons that connect to a socket. It returns when the session is over,
// the caller has closed the socket and all connections have ended.
func (h *Holder) Serve(s *socket.Socket) {
	var wg sync.WaitGroup
	defer h.description.Remove()
	defer wg.Wait()
	wg.Go(func() { h.keep(s.Restore, h.description.Restore) })
	for {
		c, err := s.Accept()
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
	datagrams, err := socket.ReceiveDescriptor(c)
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

// keep makes files again that are gone.
func (h *Holder) keep(restore ...func() error) {
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-h.end:
			return
		case <-ticker.C:
			for _, again := range restore {
				if err := again(); err != nil {
					h.log.Warn("socket is gone, or the terminfo entry, and cannot be made again", "error", err)
				}
			}
		}
	}
}
