//go:build !js

package websocket

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	"github.com/coder/websocket"
)

// maxHeaders bounds the headers of a server's answer in bytes.
const maxHeaders = 16 << 10

// errText is the error of a peer that sends text: it speaks another protocol.
var errText = errors.New("WebSocket: the peer sends text")

// A conn is a WebSocket as a connection. Its addresses and deadlines are those of the connection below.
type conn struct {
	net.Conn // below the WebSocket
	ws       *websocket.Conn
	message  io.Reader // what is left of the message that is read, or nil
	close    func() error
}

func newConn(ws *websocket.Conn, below net.Conn) *conn {
	ws.SetReadLimit(maxMessage)
	c := &conn{Conn: below, ws: ws}
	c.close = sync.OnceValue(func() error {
		err := rawOf(below).Close() // first: a close in TLS may wait for a write that blocks
		ws.CloseNow()
		return err
	})
	return c
}

// rawOf returns the connection below TLS.
func rawOf(c net.Conn) net.Conn {
	if over, ok := c.(interface{ NetConn() net.Conn }); ok {
		return over.NetConn()
	}
	return c
}

// Open connects to the WebSocket at a URL, wss: or ws:, by the function dial, unless ctx ends before. The certificate of the
// server there is not checked, as nothing depends on it: TLS inside proves who the daemon is, and it may be behind the
// proxy of a network that reads along.
func Open(
	ctx context.Context, url string, dial func(ctx context.Context, network, address string) (net.Conn, error),
) (net.Conn, error) {
	c, err := open(ctx, url, &http.Transport{DialContext: dial, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// OpenVerified connects to the WebSocket at a URL, wss:, by the function dial, whose connection is over TLS, to a server that
// dial has verified. A message from there may have any length: it is read in parts.
func OpenVerified(
	ctx context.Context, url string, dial func(ctx context.Context, network, address string) (net.Conn, error),
) (net.Conn, error) {
	c, err := open(ctx, url, &http.Transport{DialTLSContext: dial})
	if err != nil {
		return nil, err
	}
	c.ws.SetReadLimit(-1)
	return c, nil
}

// open connects by the function of the transport that dials.
func open(ctx context.Context, url string, transport *http.Transport) (*conn, error) {
	var below net.Conn
	keep := func(
		dial func(ctx context.Context, network, address string) (net.Conn, error),
	) func(ctx context.Context, network, address string) (net.Conn, error) {
		if dial == nil {
			return nil
		}
		return func(ctx context.Context, network, address string) (_ net.Conn, err error) {
			below, err = dial(ctx, network, address)
			return below, err
		}
	}
	transport.DialContext, transport.DialTLSContext = keep(transport.DialContext), keep(transport.DialTLSContext)
	transport.MaxResponseHeaderBytes = maxHeaders
	ws, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPClient: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}})
	if err != nil {
		transport.CloseIdleConnections()
		return nil, err
	}
	return newConn(ws, below), nil
}

// Accept makes the connection of a request a WebSocket. On an error it has answered the request: pages of another origin
// are refused. Whoever has the connection closes it, whatever becomes of the handler.
func Accept(w http.ResponseWriter, r *http.Request) (net.Conn, error) {
	taker := &taker{ResponseWriter: w}
	ws, err := websocket.Accept(taker, r, nil)
	if err != nil {
		return nil, err
	}
	return newConn(ws, taker.conn), nil
}

// A taker keeps the connection that is taken over from a server of HTTP.
type taker struct {
	http.ResponseWriter
	conn net.Conn
}

func (t *taker) Hijack() (_ net.Conn, rw *bufio.ReadWriter, err error) {
	t.conn, rw, err = http.NewResponseController(t.ResponseWriter).Hijack()
	return t.conn, rw, err
}

// NetConn returns the connection below.
func (c *conn) NetConn() net.Conn { return c.Conn }

// Read reads from the messages that come.
func (c *conn) Read(b []byte) (int, error) {
	for {
		if c.message == nil {
			kind, r, err := c.ws.Reader(context.Background())
			if err == nil && kind != websocket.MessageBinary {
				err = errText
			}
			if err != nil {
				return 0, ended(err)
			}
			c.message = r
		}
		n, err := c.message.Read(b)
		if err == io.EOF {
			c.message, err = nil, nil
		}
		if n > 0 || err != nil || len(b) == 0 {
			return n, ended(err)
		}
	}
}

// ended returns the error of a read. The end of the WebSocket, and that of the connection below, are the end of the bytes.
// After a deadline TLS reads again only if the error is the network's own.
func ended(err error) error {
	if network := net.Error(nil); errors.As(err, &network) && network.Timeout() {
		return network
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || websocket.CloseStatus(err) >= 0 {
		return io.EOF
	}
	return err
}

// Write sends messages.
func (c *conn) Write(b []byte) (n int, err error) {
	for n < len(b) {
		part := b[n:min(n+maxMessage, len(b))]
		if err := c.ws.Write(context.Background(), websocket.MessageBinary, part); err != nil {
			return n, fmt.Errorf("WebSocket: %w", err)
		}
		n += len(part)
	}
	return n, nil
}

// Close closes the connection below. It does not block.
func (c *conn) Close() error { return c.close() }
