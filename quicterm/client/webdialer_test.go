//go:build linux || darwin

package client

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/migrate/carrier/tcp"
	"github.com/quicterm/quicterm/migrate/carrier/websocket"
	"github.com/quicterm/quicterm/quicterm/auth"
)

// A twoPorts network has one server, by TCP and by HTTPS, or by one of them.
type twoPorts struct {
	Network
	direct, web func(context.Context) (net.Conn, error)
	dials       atomic.Int32 // of HTTPS
}

func (n *twoPorts) Dial(ctx context.Context, _ string, remote netip.AddrPort) (net.Conn, error) {
	if remote.Port() == WebPort {
		n.dials.Add(1)
		return n.web(ctx)
	}
	return n.direct(ctx)
}

func refuses(context.Context) (net.Conn, error) { return nil, syscall.ECONNREFUSED }

func isSilent(ctx context.Context) (net.Conn, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// HTTPS is dialed when TCP refuses or is silent, and at once when it was what worked last. What fails there is not told.
func TestDialOverWeb(t *testing.T) {
	t.Parallel()
	conf := &tls.Config{NextProtos: []string{"test"}}
	page := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "server.example" || r.URL.Path != webPath {
			t.Errorf("asked for %s%s", r.Host, r.URL)
		}
		if c, err := websocket.Accept(w, r); err == nil {
			tcp.Server(c, conf).Handshake(context.Background())
		}
	}))
	defer page.Close()
	conf.Certificates = page.TLS.Certificates
	own, err := tls.Listen("tcp", "127.0.0.1:0", conf)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	go func() {
		for {
			c, err := own.Accept()
			if err != nil {
				return
			}
			go c.(*tls.Conn).Handshake()
		}
	}()
	reach := func(l net.Listener) func(context.Context) (net.Conn, error) {
		return func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
		}
	}
	n := &twoPorts{web: isSilent}
	d := &tcpDialer{network: n, tls: &tls.Config{InsecureSkipVerify: true, NextProtos: conf.NextProtos}, webHost: "server.example"}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dial := func(why string, direct func(context.Context) (net.Conn, error), overWeb bool) (took time.Duration) {
		t.Helper()
		n.direct = direct
		begun := time.Now()
		c, err := d.dial(ctx, migrate.Candidate{Transport: migrate.TCP, Remote: serverAddr})
		if err != nil {
			t.Fatalf("%s: %v", why, err)
		}
		took = time.Since(begun)
		if remote := c.(*tcp.Conn).RemoteAddr(); remote != serverAddr {
			t.Errorf("%s: the server is at %v", why, remote)
		}
		c.Close()
		if d.byWeb.Load() != overWeb {
			t.Errorf("%s: over HTTPS: %t", why, d.byWeb.Load())
		}
		return took
	}
	dial("TCP answers", reach(own), false)
	n.web = reach(page.Listener)
	if took := dial("TCP is silent", isSilent, true); took < webDelay {
		t.Errorf("HTTPS is dialed after %v", took)
	}
	d.byWeb.Store(false)
	dial("TCP refuses", refuses, true)
	d.byWeb.Store(false)
	n.direct, n.web = refuses, func(context.Context) (net.Conn, error) { return nil, &auth.ChangedHostError{} }
	if _, err := d.dial(ctx, migrate.Candidate{Transport: migrate.TCP, Remote: serverAddr}); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("both fail: %v", err)
	}
	n.web = isSilent
	if _, err := d.dial(ctx, migrate.Candidate{Transport: migrate.TCP, Remote: serverAddr}); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("TCP refuses, and HTTPS is silent: %v", err)
	}
	before := n.dials.Load()
	n.direct = func(context.Context) (net.Conn, error) { return nil, &auth.UnknownHostError{} }
	_, err = d.dial(ctx, migrate.Candidate{Transport: migrate.TCP, Remote: serverAddr})
	if !errors.As(err, new(*auth.UnknownHostError)) || n.dials.Load() != before {
		t.Errorf("a server whose key is not known: %v, and %d dials of HTTPS", err, n.dials.Load()-before)
	}
}
