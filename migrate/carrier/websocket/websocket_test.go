package websocket

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/carriertest"
	"github.com/quicterm/quicterm/migrate/carrier/tcp"
)

// patience is how long anything may take on a busy machine.
const patience = time.Minute

// serve returns the URL of a server that gives each WebSocket that it accepts to the channel.
func serve(t *testing.T) (url string, accepted <-chan net.Conn) {
	conns := make(chan net.Conn, 1)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := Accept(w, r); err == nil {
			conns <- c
		}
	}))
	s.Listener = tcp.Bound(s.Listener)
	s.Start()
	t.Cleanup(s.Close)
	return "ws" + strings.TrimPrefix(s.URL, "http"), conns
}

func direct(ctx context.Context, network, address string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, address)
}

// open returns both ends of a WebSocket.
func open(t *testing.T) (near, far net.Conn) {
	url, accepted := serve(t)
	near, err := Open(t.Context(), url, direct)
	if err != nil {
		t.Fatal(err)
	}
	far = <-accepted
	t.Cleanup(func() { near.Close(); far.Close() })
	return near, far
}

// testTLS returns the configurations of the two ends.
func testTLS(t *testing.T) (client, server *tls.Config) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	cert, err := x509.CreateCertificate(nil, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	client = &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"test"}}
	server = &tls.Config{
		NextProtos:   []string{"test"},
		Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: key}},
	}
	return client, server
}

// connect returns the two ends of a carrier over a WebSocket.
func connect(t *testing.T) (client, server *tcp.Conn) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	clientTLS, serverTLS := testTLS(t)
	near, far := open(t)
	done := make(chan error, 1)
	go func() {
		server = tcp.Server(far, serverTLS)
		done <- server.Handshake(ctx)
	}()
	dial := func(context.Context, string, string) (net.Conn, error) { return near, nil }
	client, err := tcp.Dial(ctx, dial, netip.AddrPort{}, clientTLS)
	if err := errors.Join(err, <-done); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

func TestWebSocket(t *testing.T) {
	carriertest.Run(t, func(t *testing.T) (a, b carrier.Carrier) { return connect(t) })
}

func TestCarrier(t *testing.T) {
	client, server := connect(t)
	near, far := client.TLS(), server.TLS()
	a, err := near.ExportKeyingMaterial("EXPERIMENTAL", nil, 32)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := far.ExportKeyingMaterial("EXPERIMENTAL", nil, 32); err != nil || !bytes.Equal(a, b) {
		t.Errorf("the ends export %x and %x, %v", a, b, err)
	}
	if server.RemoteAddr() != client.LocalAddr() || !server.RemoteAddr().IsValid() {
		t.Errorf("addresses: %v and %v", server.RemoteAddr(), client.LocalAddr())
	}
	server.Write([]byte("last words"))
	server.CloseWrite()
	if got, err := io.ReadAll(client); string(got) != "last words" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
	server.SetDeadline(time.Now())
	if _, err := server.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a read after its deadline: %v", err)
	}
	client.Close()
	for until := time.Now().Add(patience); !server.HungUp(); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the server does not see the end before a read")
		}
	}
	server.SetDeadline(time.Time{})
	if _, err := server.Read(make([]byte, 1)); !tcp.PeerGone(err) {
		t.Errorf("a read after the end: %v", err)
	}
}

// Messages that are longer than the limit, text, and the end of the WebSocket end the connection.
func TestEnds(t *testing.T) {
	for name, test := range map[string]struct {
		send func(*websocket.Conn) error
		want error
	}{
		"long": {func(c *websocket.Conn) error {
			return c.Write(t.Context(), websocket.MessageBinary, make([]byte, maxMessage+1))
		}, websocket.ErrMessageTooBig},
		"text":  {func(c *websocket.Conn) error { return c.Write(t.Context(), websocket.MessageText, []byte("x")) }, errText},
		"close": {func(c *websocket.Conn) error { return c.Close(websocket.StatusGoingAway, "bye") }, io.EOF},
		"gone":  {(*websocket.Conn).CloseNow, io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := open(t)
			go test.send(near.(*conn).ws)
			if n, err := io.Copy(io.Discard, far); test.want != io.EOF && !errors.Is(err, test.want) || n > maxMessage+1 {
				t.Errorf("%d bytes, %v", n, err)
			}
		})
	}
}

// Empty messages say nothing, and a message may come in parts.
func TestMessages(t *testing.T) {
	near, far := open(t)
	ws := near.(*conn).ws
	for _, m := range []string{"", "a", "", "bc"} {
		if err := ws.Write(t.Context(), websocket.MessageBinary, []byte(m)); err != nil {
			t.Fatal(err)
		}
	}
	w, err := ws.Writer(t.Context(), websocket.MessageBinary)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, "d")
	io.WriteString(w, "e")
	w.Close()
	near.Write(bytes.Repeat([]byte("f"), 3*maxMessage))
	got := make([]byte, 5+3*maxMessage)
	if _, err := io.ReadFull(far, got); err != nil || !strings.HasPrefix(string(got), "abcdef") {
		t.Errorf("%.10q, %v", got, err)
	}
}

// A page of another origin is refused, and so is what is no WebSocket.
func TestAcceptRefuses(t *testing.T) {
	url, _ := serve(t)
	for name, header := range map[string]http.Header{
		"another origin": {
			"Origin": {"https://attacker.example"}, "Connection": {"Upgrade"}, "Upgrade": {"websocket"},
			"Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"MDEyMzQ1Njc4OWFiY2RlZg=="},
		},
		"no WebSocket": {},
	} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", "http"+strings.TrimPrefix(url, "ws"), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = header
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode < 400 {
			t.Errorf("%s: %s", name, answer.Status)
		}
	}
}

// A dial to a server that is silent, or speaks no WebSocket, ends.
func TestOpenFails(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Open(ctx, "ws://"+silent.Addr().String(), direct); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a silent server: %v", err)
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	if _, err := Open(t.Context(), "ws"+strings.TrimPrefix(plain.URL, "http"), direct); err == nil {
		t.Error("a server without WebSockets: no error")
	}
}
