package privsep

import (
	"context"
	"errors"
	"net"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// udpBuffer is the size of the kernel's buffers of a UDP socket, as QUIC wants it. Only root may
// have more than the system's limit.
const udpBuffer = 7 << 20

// tell calls a process, which may be hostile or hang. One that does not answer is ended.
func tell[R any](ctx context.Context, n *running, call Call[R, None], request *R) error {
	ctx, cancel := context.WithTimeoutCause(ctx, replyTime, errSilent)
	defer cancel()
	_, err := call(ctx, request)
	if errors.Is(err, errSilent) {
		n.close()
	}
	return err
}

// errSilent is the error of a process that does not answer.
var errSilent = errors.New("the network process does not answer")

// await returns the process that runs, when there is one.
func (p *Process) await(ctx context.Context) (*running, error) {
	for {
		p.mu.Lock()
		n, arrived := p.current, p.arrived
		p.mu.Unlock()
		if n != nil {
			return n, nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return nil, errChannel
		}
	}
}

// Update implements [Network].
func (p *Process) Update(state State) {
	p.telling.Lock()
	defer p.telling.Unlock()
	p.mu.Lock()
	p.state = state
	n := p.current
	p.mu.Unlock()
	if n != nil {
		tell(context.Background(), n, n.State, &state) // if it fails, the next process gets it
	}
}

// Serve implements [Network]. It takes the socket over.
func (p *Process) Serve(ctx context.Context, l Listener) error {
	fd, err := descriptorOf(l.Socket)
	if unlinks, ok := l.Socket.(*net.UnixListener); ok {
		unlinks.SetUnlinkOnClose(false)
	}
	l.Socket.Close()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if l.Purpose == ForQUIC {
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, udpBuffer)
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, udpBuffer)
	}
	socket := &listeningSocket{Purpose: l.Purpose, passed: passed{fd: fd}}
	p.add(ctx, socket)
	<-ctx.Done()
	p.telling.Lock() // no process is told of the descriptor after it is closed
	defer p.telling.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sockets = slices.DeleteFunc(p.sockets, func(s *listeningSocket) bool { return s == socket })
	return nil
}

// add adds a socket, and has the process that runs serve it.
func (p *Process) add(ctx context.Context, s *listeningSocket) {
	p.telling.Lock()
	defer p.telling.Unlock()
	p.mu.Lock()
	p.sockets = append(p.sockets, s)
	n := p.current
	p.mu.Unlock()
	if n == nil {
		return
	}
	if err := tell(ctx, n, n.Listen, s); err != nil && ctx.Err() == nil {
		p.host.Log.Warn("the network process does not serve a socket", "error", err)
		n.close() // another process may
	}
}

// ServeLocal implements [Network]. The connection is the process's then.
func (p *Process) ServeLocal(ctx context.Context, conn net.Conn, client *Local) {
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, replyTime)
	defer cancel()
	err := p.serveLocal(ctx, conn, client)
	if err != nil {
		p.host.Calls.Leave(ctx, &client.Login.ID)
		p.host.Log.Warn("the network process does not serve a client over ssh", "error", err)
	}
}

func (p *Process) serveLocal(ctx context.Context, conn net.Conn, client *Local) error {
	n, err := p.await(ctx)
	if err != nil {
		return err
	}
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return errors.New("a connection that is no socket cannot be handed over")
	}
	fd, err := descriptorOf(socket)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return tell(ctx, n, n.Local, &handedClient{Client: *client, passed: passed{fd: fd}})
}

// Clients implements [Network].
func (p *Process) Clients(ctx context.Context) (*Clients, error) {
	return await(ctx, p, func(n *running) Call[None, Clients] { return n.Clients })
}

// Metrics implements [Network].
func (p *Process) Metrics(ctx context.Context) ([]byte, error) {
	text, err := await(ctx, p, func(n *running) Call[None, []byte] { return n.Metrics })
	if err != nil {
		return nil, err
	}
	return printableLines(*text), nil
}

// await asks the process that runs, when there is one.
func await[A any](ctx context.Context, p *Process, call func(*running) Call[None, A]) (*A, error) {
	ctx, cancel := context.WithTimeout(ctx, replyTime)
	defer cancel()
	n, err := p.await(ctx)
	if err != nil {
		return nil, err
	}
	return call(n)(ctx, new(None))
}
