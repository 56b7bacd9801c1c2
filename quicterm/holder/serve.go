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

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/rundir"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// requestTime bounds how long a daemon may take to say what it wants.
const requestTime = 10 * time.Second

// restoreEvery is how often it is looked whether a socket's name is still there.
const restoreEvery = time.Minute

// Serve serves daemons that connect to a socket, until the session is over and
// the socket is closed.
func (h *Holder) Serve(s *Socket) {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { h.keepSocket(s) })
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
		wg.Go(func() {
			defer c.Close()
			if err := h.handle(c); err != nil {
				h.log.Warn("daemon refused", "error", err)
			}
		})
	}
}

// keepSocket makes the socket again whenever its name is gone.
func (h *Holder) keepSocket(s *Socket) {
	ticker := time.NewTicker(restoreEvery)
	defer ticker.Stop()
	for {
		select {
		case <-h.end:
			return
		case <-ticker.C:
			if err := s.Restore(); err != nil {
				h.log.Warn("socket is gone and cannot be made again", "error", err)
			}
		}
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
	answer, carry, err := h.Handle(&open, m)
	if err != nil {
		return err
	}
	if err := wire.Write(c, answer); err != nil || carry == nil {
		return err
	}
	c.SetDeadline(time.Time{})
	u, err := carrier.NewUnix(c, datagrams)
	if err != nil {
		return err
	}
	carry(u)
	return nil
}

// Handle answers a request that a daemon makes on behalf of a client. If it makes
// the connection a carrier, carry runs that until it ends, and closes it.
func (h *Holder) Handle(open *wire.Open, m wire.Message) (answer wire.Message, carry func(carrier.Carrier), err error) {
	body, carry, err := h.dispatch(open, m)
	if err != nil {
		return wire.Message{}, nil, err
	}
	answer, err = wire.New(body)
	return answer, carry, err
}

func (h *Holder) dispatch(open *wire.Open, m wire.Message) (answer wire.Body, carry func(carrier.Carrier), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	allowed := h.spec.Scope == open.Scope || open.Scope == ""
	if !allowed && m.Type != wire.TypeQuery && m.Type != wire.TypeResume {
		return &wire.Error{Code: wire.CodeNoSession, Text: fmt.Sprintf("there is no session %q", h.spec.Name)}, nil, nil
	}
	switch m.Type {
	case wire.TypeQuery:
		state, err := h.stateLocked()
		if err == nil && !allowed {
			state = &wire.State{Memory: state.Memory, Name: state.Name}
		}
		return state, nil, err
	case wire.TypeKill:
		h.killLocked(open.Client)
		return &wire.Done{}, nil, nil
	case wire.TypeAttach:
		var req wire.Attach
		if err := m.Decode(&req); err != nil {
			return nil, nil, err
		}
		if err := h.mayAttachLocked(open, &req); err != nil {
			return &wire.Error{Text: err.Error()}, nil, nil
		}
		a, attached, err := h.attachLocked(open, &req)
		return attached, func(c carrier.Carrier) { h.run(a, c, true) }, err
	case wire.TypeResume:
		var req wire.Resume
		if err := m.Decode(&req); err != nil {
			return nil, nil, err
		}
		a, err := h.resumeLocked(&req)
		switch {
		case err != nil:
			h.log.Warn("resume denied", "error", err)
			return &wire.Denied{}, nil, nil
		case a.displacedBy != "":
			return &wire.Error{Code: wire.CodeDisplaced, Text: a.displacedBy}, nil, nil
		}
		return &wire.Resumed{}, func(c carrier.Carrier) { h.run(a, c, false) }, nil
	}
	return &wire.Error{Code: wire.CodeUnknown, Text: fmt.Sprintf("message %d is not known", m.Type)}, nil, nil
}

// mayAttachLocked says why a client may not have the session, if so.
func (h *Holder) mayAttachLocked(open *wire.Open, req *wire.Attach) error {
	switch {
	case h.ending:
		return fmt.Errorf("session %q is over", h.spec.Name)
	case h.spec.PTY && open.NoPTY:
		return errors.New("this key may not have a terminal")
	case !h.spec.PTY && (h.attached || req.PTY):
		return fmt.Errorf("session %q is a pipe: only the client that started it can use it", h.spec.Name)
	case h.spec.PTY && !req.PTY:
		return fmt.Errorf("session %q has a terminal: attach to it from one, or choose another name", h.spec.Name)
	case h.attached && req.Command != "":
		return fmt.Errorf("session %q runs already: attach to it without a command, or choose another name", h.spec.Name)
	}
	return nil
}

// killLocked ends the session for whoever asked.
func (h *Holder) killLocked(client string) {
	h.log.Info("killed", "client", client)
	if h.exited {
		h.finishLocked("killed after its end")
		return
	}
	h.killed = true
	h.hangup()
	h.changed.Broadcast()
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
	for _, fd := range fds[1:] { // room for one may be room for two
		unix.Close(fd)
	}
	unix.CloseOnExec(fds[0])
	return carrier.DatagramSocket(os.NewFile(uintptr(fds[0]), "datagrams"))
}
