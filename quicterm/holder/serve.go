//go:build linux || darwin

package holder

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/rundir"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// requestTime bounds how long a daemon may take to say what it wants.
const requestTime = 10 * time.Second

// serve accepts daemons until the session is over.
func (h *Holder) serve(s *Socket) {
	for {
		c, err := s.Accept()
		if errors.Is(err, os.ErrClosed) {
			return
		}
		if err != nil { // too many open files, for one: it may pass
			h.log.Warn("accept", "error", err)
			select {
			case <-h.end:
				return
			case <-time.After(time.Second):
				continue
			}
		}
		h.wg.Go(func() {
			defer c.Close()
			if err := h.handle(c); err != nil {
				h.log.Warn("daemon refused", "error", err)
			}
		})
	}
}

// handle serves one connection of a daemon.
func (h *Holder) handle(c *net.UnixConn) error {
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
	allowed := h.spec.Scope == open.Scope || open.Scope == ""
	if !allowed && m.Type != wire.TypeQuery && m.Type != wire.TypeResume {
		return wire.Send(c, noSession(h.spec.Name))
	}
	switch m.Type {
	case wire.TypeQuery:
		h.mu.Lock()
		state, err := h.stateLocked()
		h.mu.Unlock()
		if err != nil {
			return err
		}
		if !allowed {
			state = &wire.State{Memory: state.Memory}
		}
		return wire.Send(c, state)
	case wire.TypeKill:
		h.kill(open.Client)
		return wire.Send(c, &wire.Done{})
	case wire.TypeAttach:
		return h.handleAttach(c, datagrams, &open, m)
	case wire.TypeResume:
		return h.handleResume(c, datagrams, m)
	}
	return wire.Send(c, &wire.Error{Code: wire.CodeUnknown, Text: fmt.Sprintf("message %d is not known", m.Type)})
}

func noSession(name string) *wire.Error {
	return &wire.Error{Code: wire.CodeNoSession, Text: fmt.Sprintf("there is no session %q", name)}
}

func (h *Holder) handleAttach(c, datagrams *net.UnixConn, open *wire.Open, m wire.Message) error {
	var req wire.Attach
	if err := m.Decode(&req); err != nil {
		return err
	}
	h.mu.Lock()
	a, attached, err := h.tryAttachLocked(open, &req)
	h.mu.Unlock()
	if err != nil {
		return wire.Send(c, &wire.Error{Text: err.Error()})
	}
	if err := wire.Send(c, attached); err != nil {
		return err
	}
	return h.carry(a, c, datagrams, true)
}

func (h *Holder) tryAttachLocked(open *wire.Open, req *wire.Attach) (*attachment, *wire.Attached, error) {
	switch {
	case h.ending:
		return nil, nil, fmt.Errorf("session %q is over", h.spec.Name)
	case h.spec.PTY && open.NoPTY:
		return nil, nil, errors.New("this key may not have a terminal")
	case !h.spec.PTY && (h.writer != nil || h.shown > 1):
		return nil, nil, fmt.Errorf("session %q is a pipe: only the client that started it can use it", h.spec.Name)
	}
	return h.attachLocked(open, req)
}

func (h *Holder) handleResume(c, datagrams *net.UnixConn, m wire.Message) error {
	var req wire.Resume
	if err := m.Decode(&req); err != nil {
		return err
	}
	h.mu.Lock()
	a, err := h.resumeLocked(&req)
	displacedBy := ""
	if err == nil {
		displacedBy = a.displacedBy
	}
	h.mu.Unlock()
	if err != nil {
		return errors.Join(err, wire.Send(c, &wire.Denied{}))
	}
	if displacedBy != "" {
		return wire.Send(c, &wire.Error{Code: wire.CodeDisplaced, Text: displacedBy})
	}
	if err := wire.Send(c, &wire.Resumed{}); err != nil {
		return err
	}
	return h.carry(a, c, datagrams, false)
}

// carry runs a connection as a carrier until it ends.
func (h *Holder) carry(a *attachment, c, datagrams *net.UnixConn, ready bool) error {
	c.SetDeadline(time.Time{})
	u, err := carrier.NewUnix(c, datagrams)
	if err != nil {
		return err
	}
	h.run(a, u, ready)
	return nil
}

// kill ends the session for whoever asked.
func (h *Holder) kill(client string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.log.Info("killed", "client", client)
	h.killed = true
	if h.exited {
		h.finishLocked("killed after its end")
		return
	}
	h.hangup()
}

// receiveDescriptor reads the byte that begins a connection, and returns the
// datagram socket that comes with it, or nil if none does.
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
	unix.CloseOnExec(fds[0])
	return carrier.DatagramSocket(os.NewFile(uintptr(fds[0]), "datagrams"))
}
