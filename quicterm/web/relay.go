package web

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier/websocket"
)

const (
	// secretSize is the size of a secret in bytes. A connection of the page begins with one of the kinds and a secret.
	secretSize = 32
	question   = 'q' // asks for an Answer, by the secret of the link, once, or by that of an Answer
	relayed    = 'r' // is relayed to the host, by the secret of an Answer

	// firstTime bounds how long a connection of the page may take to send that, and a request its headers, and how long one
	// is kept for the next request. answerTime is how long an answer may take.
	firstTime  = 5 * time.Second
	answerTime = time.Minute

	// maxConnections bounds those to the page that have not given a secret: any account may connect to a loopback address.
	maxConnections = 64

	// maxHeader bounds the headers of a request in bytes.
	maxHeader = 16 << 10
)

// An Answer says to the page what to attach to.
type Answer struct {
	Secret  string `json:"secret"`            // base64, of its further connections
	Token   string `json:"token"`             // base64, for one login
	Key     string `json:"key"`               // fingerprint of the host's key
	Host    string `json:"host"`              // for people
	Session string `json:"session,omitempty"` // to attach to; a new one if empty
}

// A Relay serves the page on this machine to who has a link, and relays its connections to one host. What they bring is
// sealed between the page and the host.
type Relay struct {
	// Answer returns what to attach to, without the secret. It is called when the link is used, and for each further login.
	Answer func(context.Context) (Answer, error)
	// Dial connects to the host, and closes the connection when use has returned. It may fail before.
	Dial func(ctx context.Context, use func(io.ReadWriteCloser))

	listener net.Listener
	origin   string

	mu   sync.Mutex
	link []byte // the secret of the link, nil once it was used
	page []byte // the secret of the page, nil before
}

// NewRelay returns a relay that listens at the address of a listener, which must be of a loopback interface.
func NewRelay(l net.Listener) *Relay {
	r := &Relay{listener: l, origin: "http://" + l.Addr().String(), link: make([]byte, secretSize)}
	rand.Read(r.link)
	return r
}

// Link returns the address of the page, with a secret that is good once.
func (r *Relay) Link() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.origin + "/#s=" + base64.RawURLEncoding.EncodeToString(r.link)
}

// Serve serves the page until ctx ends. It closes the listener and all connections.
func (r *Relay) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var sockets sync.WaitGroup
	defer sockets.Wait()
	defer cancel()
	handler := Handler(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		sockets.Add(1) // within Serve
		defer sockets.Done()
		r.serveSocket(ctx, w, req)
	}))
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			// Another Host is a name that an attacker has made resolve to this machine (DNS rebinding).
			if "http://"+req.Host != r.origin {
				http.Error(w, "another host", http.StatusMisdirectedRequest)
				return
			}
			handler.ServeHTTP(w, req)
		}),
		ReadHeaderTimeout: firstTime, ReadTimeout: firstTime, IdleTimeout: firstTime, WriteTimeout: answerTime,
		MaxHeaderBytes: maxHeader, ErrorLog: log.New(io.Discard, "", 0),
	}
	defer server.Close()
	defer context.AfterFunc(ctx, func() { server.Close() })()
	err := server.Serve(&limited{r.listener, ctx, make(chan struct{}, maxConnections)})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// serveSocket serves a connection of the page until it ends.
func (r *Relay) serveSocket(ctx context.Context, w http.ResponseWriter, req *http.Request) {
	if req.Header.Get("Origin") != r.origin {
		http.Error(w, "another origin", http.StatusForbidden)
		return
	}
	c, err := websocket.Accept(w, req)
	if err != nil {
		return
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	var first [1 + secretSize]byte
	c.SetDeadline(time.Now().Add(firstTime))
	if _, err := io.ReadFull(c, first[:]); err != nil {
		return
	}
	c.SetDeadline(time.Time{})
	switch kind, secret := first[0], first[1:]; {
	case kind == question && (r.use(secret) || r.isPage(secret)):
		leave(c)
		r.answer(ctx, c)
	case kind == relayed && r.isPage(secret):
		leave(c)
		r.relay(ctx, c)
	}
}

// A limited listener waits, until ctx ends, for a place for a connection that it accepts.
type limited struct {
	net.Listener
	ctx    context.Context
	places chan struct{}
}

func (l *limited) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	select {
	case l.places <- struct{}{}:
		return &placed{c, sync.OnceFunc(func() { <-l.places })}, nil
	case <-l.ctx.Done():
		c.Close()
		return nil, net.ErrClosed
	}
}

// A placed connection has a place until it is closed, or leaves that.
type placed struct {
	net.Conn
	leave func()
}

func (c *placed) Close() error {
	c.leave()
	return c.Conn.Close()
}

// leave gives back the place of a WebSocket.
func leave(c net.Conn) { c.(interface{ NetConn() net.Conn }).NetConn().(*placed).leave() }

// use reports whether a secret is that of the link, which is good for no other then.
func (r *Relay) use(secret []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if subtle.ConstantTimeCompare(secret, r.link) == 0 {
		return false
	}
	r.link, r.page = nil, make([]byte, secretSize)
	rand.Read(r.page)
	return true
}

func (r *Relay) isPage(secret []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return subtle.ConstantTimeCompare(secret, r.page) == 1
}

// answer tells the page what to attach to, as JSON behind its length, u16. Without an answer, the page gets none.
func (r *Relay) answer(ctx context.Context, c net.Conn) {
	answer, err := r.Answer(ctx)
	if err != nil {
		return
	}
	answer.Secret = base64.RawURLEncoding.EncodeToString(r.page)
	text, err := json.Marshal(answer)
	if err != nil {
		return
	}
	c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(text))), text...))
	c.Read(make([]byte, 1)) // the page ends it
}

// relay copies between the page and the host until one of them ends the connection.
func (r *Relay) relay(ctx context.Context, c net.Conn) {
	r.Dial(ctx, func(host io.ReadWriteCloser) {
		defer context.AfterFunc(ctx, func() { host.Close() })()
		var both sync.WaitGroup
		defer both.Wait()
		both.Go(func() {
			io.Copy(host, c)
			host.Close()
		})
		io.Copy(c, host)
		c.Close()
	})
}
