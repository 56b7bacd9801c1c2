//go:build linux || darwin

package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier/tcp"
	"github.com/quicterm/quicterm/quicterm/monitor"
)

const (
	// tcpWindow is how many bytes the kernel takes from a client before the daemon reads: what
	// it announces with the first packet anyway. maxTCPWindow is the same for a client that has
	// logged in and sends much, as far as its account may have that (see accounts.grow).
	tcpWindow, maxTCPWindow = 64 << 10, 1 << 20
)

// errNoHandshake is the error of a TCP connection that is no client's: the client does not
// complete the TLS handshake.
var errNoHandshake = errors.New("no handshake")

// ServeTCP serves clients over TCP, beside Serve, until ctx ends or the listener fails. It closes the listener.
func (s *Server) ServeTCP(ctx context.Context, l net.Listener) error {
	defer l.Close()
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	for {
		socket, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			if errors.Is(err, net.ErrClosed) {
				return fmt.Errorf("accept: %w", err)
			}
			s.refusedLog.Limited(time.Now(), s.log, "cannot accept a TCP connection", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(monitor.AcceptPause):
			}
			continue
		}
		connCtx, end := context.WithCancelCause(context.Background())
		guest, err := s.admit(connCtx, tcp.RemoteAddr(socket))
		if err != nil {
			end(err)
			tcp.Refuse(socket)
			continue
		}
		i := s.newTCPIncoming(guest, end, socket)
		wg.Go(i.watch)
		wg.Go(func() { s.countConn(ctx, i) })
	}
}

// A tcpIncoming is a connection over TCP, and its carrier.
type tcpIncoming struct {
	*tcp.Conn
	server *Server
	ctx    context.Context
	end    context.CancelCauseFunc
	socket net.Conn
	web    bool           // it is a WebSocket
	peer   netip.AddrPort // of a WebSocket that is not from this machine or a proxy of the settings

	// For the goroutine that reads:
	recent    int // bytes read since a time
	since     time.Time
	maxWindow bool // the window is as large as it may be
}

func (s *Server) newTCPIncoming(ctx context.Context, end context.CancelCauseFunc, socket net.Conn) *tcpIncoming {
	i := &tcpIncoming{Conn: tcp.Server(socket, s.tls), server: s, ctx: ctx, end: end, socket: socket}
	i.SetReadBuffer(tcpWindow)
	return i
}

// watch ends the connection when the client has closed its end. It returns when the connection has ended.
func (i *tcpIncoming) watch() {
	ticker := time.NewTicker(hangupInterval)
	defer ticker.Stop()
	for {
		select {
		case <-i.ctx.Done():
			return
		case <-ticker.C:
			if i.HungUp() {
				i.end(io.EOF)
				i.Close()
			}
		}
	}
}

// Context implements [incoming].
func (i *tcpIncoming) Context() context.Context { return i.ctx }

// Carrier implements [incoming]. It does the TLS handshake.
func (i *tcpIncoming) Carrier(ctx context.Context) (clientCarrier, error) {
	if err := i.Handshake(ctx); err != nil {
		i.end(err)
		return nil, fmt.Errorf("%w: %w", errNoHandshake, err)
	}
	return i, nil
}

// HandshakeComplete implements [clientCarrier]. There is no early data: nothing that is read can be a replay.
func (i *tcpIncoming) HandshakeComplete() <-chan struct{} { return closed }

// Read implements [carrier.Carrier].
func (i *tcpIncoming) Read(b []byte) (int, error) {
	n, err := i.Conn.Read(b)
	i.failed(err)
	i.grow(n)
	return n, err
}

// Write implements [carrier.Carrier].
func (i *tcpIncoming) Write(b []byte) (int, error) {
	n, err := i.Conn.Write(b)
	i.failed(err)
	return n, err
}

// failed ends the connection after an error that is for good. The end of the client's side is one:
// the client expects nothing more then.
func (i *tcpIncoming) failed(err error) {
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		i.end(err)
	}
}

// grow gives the connection a larger window if it has used up the small one within growTime, and
// its account may have more.
func (i *tcpIncoming) grow(read int) {
	if i.maxWindow {
		return
	}
	if now := time.Now(); now.Sub(i.since) > growTime {
		i.recent, i.since = 0, now
	}
	if i.recent += read; i.recent >= tcpWindow {
		i.recent = 0
		if i.server.grow(i.ctx, maxTCPWindow-tcpWindow) {
			i.maxWindow = true
			i.SetReadBuffer(maxTCPWindow)
		}
	}
}

// Refuse implements [incoming].
func (i *tcpIncoming) Refuse() error {
	defer i.end(net.ErrClosed)
	return tcp.Refuse(i.socket)
}

// Close implements [incoming] and [carrier.Carrier].
func (i *tcpIncoming) Close() error {
	defer i.end(net.ErrClosed)
	return i.Conn.Close()
}
