package client

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"

	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/tcp"
)

// A tcpDialer makes connections of TLS on TCP. Each has a whole handshake, whether there is a session already or not:
// a ticket would save nothing, because the server answers before the client may send.
type tcpDialer struct {
	network Network
	tls     *tls.Config
	webHost string      // as in Config
	byWeb   atomic.Bool // what has worked last
}

// direct connects to the server's own port.
func (d *tcpDialer) direct(ctx context.Context, to migrate.Candidate) (carrier.Carrier, error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return d.network.Dial(ctx, interfaceOf(to), to.Remote)
	}
	conn, err := tcp.Dial(ctx, dial, to.Remote, d.tls)
	if err != nil {
		return nil, err
	}
	return conn, nil
}

func (d *tcpDialer) redial(ctx context.Context, to migrate.Candidate) (carrier.Carrier, error) {
	return d.dial(ctx, to)
}

func (d *tcpDialer) failed(error) {}

// refused returns false: a server that has too many clients resets connections, and so do others.
func (d *tcpDialer) refused(error) bool { return false }

// A Tunnel makes carriers to the daemon through another login, such as that of ssh: the daemon
// knows the user already.
type Tunnel interface {
	// Dial returns a carrier, which the caller closes. It may return before the login is done: then the first Write
	// waits for it or is sent behind it, and errors come from Read. The context ends Dial, and not a carrier that it
	// has returned. ask says whether the user may be asked for something.
	Dial(ctx context.Context, ask bool) (carrier.Carrier, error)
}

// A tunnelDialer makes carriers through a tunnel.
type tunnelDialer struct{ tunnel Tunnel }

func (d tunnelDialer) dial(ctx context.Context, _ migrate.Candidate) (carrier.Carrier, error) {
	return d.tunnel.Dial(ctx, true)
}

func (d tunnelDialer) redial(ctx context.Context, _ migrate.Candidate) (carrier.Carrier, error) {
	return d.tunnel.Dial(ctx, false)
}

func (d tunnelDialer) failed(error)       {}
func (d tunnelDialer) refused(error) bool { return false }
