package client

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/tcp"
	"github.com/quicterm/quicterm/migrate/carrier/websocket"
	"github.com/quicterm/quicterm/quicterm/auth"
)

const (
	// WebPort is the port of HTTPS, the only one that some networks let through, and webPath where a daemon's page has
	// its WebSocket.
	WebPort = 443
	webPath = "/socket"
)

// dial connects by TCP and, if that does not answer, over a WebSocket at the server's port of HTTPS: both lead to the same
// daemon, whose host key the TLS inside proves. What answers first is used, and tried at once the next time. What fails
// there says nothing about the server, and is not told: another program may have that port.
func (d *tcpDialer) dial(ctx context.Context, to migrate.Candidate) (carrier.Carrier, error) {
	if d.webHost == "" || to.Remote.Port() == WebPort {
		return d.direct(ctx, to)
	}
	type result struct {
		carrier carrier.Carrier
		err     error
		web     bool
	}
	results := make(chan result, 2)
	start := func(ctx context.Context, web bool) {
		go func() {
			if web {
				c, err := d.overWeb(ctx, to)
				results <- result{c, err, true}
			} else {
				c, err := d.direct(ctx, to)
				results <- result{c, err, false}
			}
		}()
	}
	ctx, cancel := context.WithCancel(ctx)
	running := 1
	defer func() {
		cancel()
		for range running {
			go func() {
				if late := <-results; late.err == nil {
					late.carrier.Close()
				}
			}()
		}
	}()
	start(ctx, false)
	delay := webDelay
	if d.byWeb.Load() {
		delay = 0
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	var failed error
	var late <-chan time.Time
	for waiting := true; ; {
		select {
		case <-timer.C:
			waiting = false
			start(ctx, true)
			running++
		case <-late:
			return nil, failed
		case r := <-results:
			running--
			switch {
			case r.err == nil:
				d.byWeb.Store(r.web)
				return r.carrier, nil
			case !r.web && answered(r.err):
				return nil, r.err
			case !r.web:
				failed, late = r.err, time.After(patience)
				if waiting {
					timer.Reset(0)
				}
			}
			if running == 0 && !waiting {
				return nil, failed
			}
		}
	}
}

// answered reports whether an error of a dial says that the server has answered, with a key that is not accepted.
func answered(err error) bool {
	return errors.As(err, new(*auth.UnknownHostError)) || errors.As(err, new(*auth.ChangedHostError)) ||
		errors.As(err, new(*auth.RevokedHostError))
}

// overWeb connects over a WebSocket. The carrier has the server's own port: nothing but this dialer knows the other.
func (d *tcpDialer) overWeb(ctx context.Context, to migrate.Candidate) (carrier.Carrier, error) {
	remote := netip.AddrPortFrom(to.Remote.Addr(), WebPort)
	at := url.URL{Scheme: "wss", Host: d.webHost, Path: webPath}
	if strings.Contains(d.webHost, ":") { // an address of IPv6
		at.Host = "[" + d.webHost + "]"
	}
	open := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return websocket.Open(ctx, at.String(), func(ctx context.Context, _, _ string) (net.Conn, error) {
			return d.network.Dial(ctx, interfaceOf(to), remote)
		})
	}
	conn, err := tcp.Dial(ctx, open, to.Remote, d.tls)
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// ReachWeb dials the server's port of HTTPS, as a session does where nothing else gets through, and returns the time of a
// round trip. Its error says why no daemon answers there. It logs in to none.
func (c *Client) ReachWeb(ctx context.Context, to Candidate) (rtt time.Duration, err error) {
	d, ok := c.dialers[migrate.TCP].(*tcpDialer)
	if !ok || d.webHost == "" {
		return 0, &UnreachableError{errors.New("the server has no name for HTTPS")}
	}
	return c.measure(migrate.TCP, func() (carrier.Carrier, error) { return d.overWeb(ctx, to.internal()) })
}
