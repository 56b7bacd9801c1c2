//go:build linux || darwin

package server

import (
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier/tcp"
	"github.com/quicterm/quicterm/migrate/carrier/websocket"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/web"
)

const (
	// maxWebHeader bounds the headers of a request in bytes.
	maxWebHeader = 16 << 10

	// forwardedFor is the header in which a proxy tells where a client is.
	forwardedFor = "X-Forwarded-For"
)

// errNoCertificate is the error of a handshake for the page while its certificate cannot be read.
var errNoCertificate = errors.New("the page has no certificate")

// ServeWeb serves the page, and clients over its WebSockets, until ctx ends or the listener fails. It closes the listener.
func (s *Server) ServeWeb(ctx context.Context, l net.Listener) error {
	accepting := &webListener{
		Listener: tcp.Bound(l), server: s, places: make(chan struct{}, s.setup.MaxUnauthenticated),
	}
	var listener net.Listener = accepting
	if s.setup.WebTLS {
		listener = tls.NewListener(listener, &tls.Config{
			MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}, GetCertificate: s.webCertificate,
		})
	}
	var connections sync.WaitGroup
	defer connections.Wait()
	handler := web.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.serveWebSocket(ctx, &connections, w, r)
	}))
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if accepting.ends(r.Context().Value(webKey{}).(*webConn)) {
				w.Header().Set("Connection", "close") // unless it becomes a WebSocket
			}
			handler.ServeHTTP(w, r)
		}),
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew: // within Serve
				connections.Add(1)
			case http.StateClosed:
				s.counts.count("quicterm_web_pages_total")
				connections.Done()
			case http.StateHijacked: // by serveWebSocket, which still counts
			}
		},
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, webKey{}, webConnOf(c))
		},
		ReadHeaderTimeout: webTime, ReadTimeout: webTime, IdleTimeout: webTime, WriteTimeout: webPageTime,
		MaxHeaderBytes: maxWebHeader, ErrorLog: log.New(io.Discard, "", 0), // what strangers do wrong is not worth a line
	}
	defer server.Close()
	defer context.AfterFunc(ctx, func() { server.Close() })()
	err := server.Serve(listener)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// webCertificate returns the page's certificate of the moment, whose key the monitor has. Signatures by a key of RSA have
// the limits of those by a host key: they are expensive.
func (s *Server) webCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	chain := s.state.Load().WebChain
	if len(chain) == 0 {
		return nil, errNoCertificate
	}
	leaf, err := x509.ParseCertificate(chain[0])
	if err != nil {
		return nil, err
	}
	if leaf.PublicKeyAlgorithm == x509.RSA && !s.allowRSA(hello) {
		return nil, errBusy
	}
	signer := auth.RemoteSigner(leaf.PublicKey, func(message []byte, hash crypto.Hash) ([]byte, error) {
		return s.sign(&privsep.Sign{Web: true, Message: message, Hash: uint(hash)})
	})
	return &tls.Certificate{Certificate: chain, PrivateKey: signer, Leaf: leaf}, nil
}

// A webListener accepts connections to the page. One that comes from its client is a stranger's from the beginning. One
// that comes from a proxy is so when it becomes a WebSocket; before, it has one of the places.
type webListener struct {
	net.Listener
	server *Server
	places chan struct{}
}

func (l *webListener) Accept() (net.Conn, error) {
	for {
		socket, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.admit(socket); c != nil {
			return c, nil
		}
		tcp.Refuse(socket)
	}
}

func (l *webListener) admit(socket net.Conn) *webConn {
	peer := tcp.RemoteAddr(socket)
	c := &webConn{Conn: socket, since: time.Now(), leave: func() {}}
	c.proxied = peer.Addr().IsLoopback() || l.server.isProxy(peer.Addr())
	if c.proxied {
		select {
		case l.places <- struct{}{}:
			c.leave = sync.OnceFunc(func() { <-l.places })
			return c
		default:
			l.server.counts.refused(errBusy)
			return nil
		}
	}
	ctx, err := c.admit(l.server, peer)
	if err != nil {
		return nil
	}
	context.AfterFunc(guestOf(ctx).pending.evicted, func() { tcp.Refuse(c) })
	return c
}

// ends reports whether a connection is not kept for a further request, because it is old, or there are many from proxies.
func (l *webListener) ends(c *webConn) bool {
	return 2*len(l.places) > cap(l.places) || time.Since(c.since) > webPageTime
}

// isProxy reports whether the settings name a proxy with an address.
func (s *Server) isProxy(a netip.Addr) bool {
	return slices.ContainsFunc(s.setup.WebProxy, func(p netip.Prefix) bool { return p.Contains(a) })
}

// A webConn is a connection to the page, which may become that of a WebSocket.
type webConn struct {
	net.Conn
	since   time.Time
	proxied bool   // it may come from a proxy
	leave   func() // gives back its place

	mu  sync.Mutex
	ctx context.Context         // of a client that was admitted, or nil
	end context.CancelCauseFunc // of ctx
}

type webKey struct{}

func webConnOf(c net.Conn) *webConn {
	if secured, ok := c.(*tls.Conn); ok {
		c = secured.NetConn()
	}
	return c.(*webConn)
}

// admit counts the connection as a client's, or refuses it.
func (c *webConn) admit(s *Server, client netip.AddrPort) (context.Context, error) {
	ctx, end := context.WithCancelCause(context.Background())
	admitted, err := s.admit(ctx, client)
	if err != nil {
		end(err)
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ctx, c.end = admitted, end
	return admitted, nil
}

// NetConn returns the connection below.
func (c *webConn) NetConn() net.Conn { return c.Conn }

// Close closes the connection, which counts no more.
func (c *webConn) Close() error {
	c.leave()
	c.mu.Lock()
	if c.end != nil {
		c.end(net.ErrClosed)
	}
	c.mu.Unlock()
	return c.Conn.Close()
}

// client returns where the client of a request is, which is not valid if a proxy does not tell. A proxy that is not named
// is one that tells.
func (s *Server) client(c *webConn, r *http.Request) (client netip.AddrPort) {
	peer := tcp.RemoteAddr(c.Conn)
	told := strings.Join(r.Header.Values(forwardedFor), ",")
	switch {
	case s.isProxy(peer.Addr()):
		last := strings.TrimSpace(told[strings.LastIndexByte(told, ',')+1:])
		if address, err := netip.ParseAddrPort(last); err == nil {
			return privsep.WithoutZone(address)
		}
		address, _ := netip.ParseAddr(last)
		return privsep.WithoutZone(netip.AddrPortFrom(address, 0))
	case c.proxied || told != "" || r.Header.Get("Forwarded") != "":
		return netip.AddrPort{}
	}
	return peer
}

// serveWebSocket makes a connection that of a client, and serves it until it ends.
func (s *Server) serveWebSocket(ctx context.Context, connections *sync.WaitGroup, w http.ResponseWriter, r *http.Request) {
	c := r.Context().Value(webKey{}).(*webConn)
	client := s.client(c, r)
	guest := c.ctx
	if guest == nil {
		var err error
		if guest, err = c.admit(s, client); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
	}
	socket, err := websocket.Accept(w, r)
	if err != nil {
		if c.proxied { // the next request is another client's
			c.end(err)
			c.ctx = nil
		}
		return
	}
	defer connections.Done()
	c.leave()
	i := s.newTCPIncoming(guest, c.end, &forwarded{socket, net.TCPAddrFromAddrPort(client)})
	i.web = true
	if !c.proxied {
		i.peer = tcp.RemoteAddr(c.Conn)
	}
	connections.Go(i.watch)
	s.countConn(ctx, i)
}

// A forwarded connection is that of a client whose address a proxy may know.
type forwarded struct {
	net.Conn
	client net.Addr
}

func (c *forwarded) RemoteAddr() net.Addr { return c.client }
func (c *forwarded) NetConn() net.Conn    { return c.Conn }
