//go:build linux || darwin

package server

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier/tcp"
	"github.com/quicterm/quicterm/migrate/carrier/websocket"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/web"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A placed listener accepts connections that seem to come from 192.0.2.1.
type placed struct{ net.Listener }

func (l placed) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &forwarded{c, net.TCPAddrFromAddrPort(far)}, nil
}

var far = netip.MustParseAddrPort("192.0.2.1:1234")

// onWeb returns a host whose daemon also serves the page, as the settings say, for connections of this machine, or for
// those that seem to come from afar.
func onWeb(t *testing.T, afar bool, set func(*host)) *tcpHost {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := onTCPBeside(t, set, func(ctx context.Context, s *Server) error {
		if afar {
			return s.ServeWeb(ctx, placed{l})
		}
		return s.ServeWeb(ctx, l)
	})
	h.addr = l.Addr().(*net.TCPAddr).AddrPort()
	return h
}

// open connects to the daemon over a WebSocket, which refuses clients while it has many strangers.
func (h *tcpHost) open() *tcp.Conn {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	dial := func() (*tcp.Conn, error) {
		return tcp.Dial(ctx, func(ctx context.Context, _, _ string) (net.Conn, error) {
			return websocket.Open(ctx, "ws://"+h.addr.String()+web.Socket, from(localhost))
		}, h.addr, h.tls)
	}
	c, err := dial()
	for errors.Is(err, syscall.ECONNRESET) && ctx.Err() == nil {
		time.Sleep(50 * time.Millisecond)
		c, err = dial()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return c
}

// get asks for the page.
func (h *tcpHost) get(client *http.Client, url string) *http.Response {
	h.t.Helper()
	answer, err := client.Get(url)
	if err != nil {
		h.t.Fatal(err)
	}
	io.Copy(io.Discard, answer.Body)
	answer.Body.Close()
	return answer
}

// A client logs in over a WebSocket, types, and comes back over another one. A proxy has brought it that does not tell
// where it is: so a token lets it in, and no key.
func TestSessionOverWeb(t *testing.T) {
	h := onWeb(t, false, func(*host) {})
	first := h.open()
	h.send(first, h.login(&wire.Attach{PTY: true})...)
	var attached wire.Attached
	m, err := wire.Read(first, wire.MaxMessage)
	if err == nil {
		err = m.Decode(&attached)
	}
	if err != nil {
		t.Fatal(err)
	}
	first.Write(typed(1, "one,"))
	h.input.await(t, "one,", 1)
	second := h.open()
	h.host.resume(second, attached, 1, typed(2, "two,"))
	h.want("a resume", second, wire.TypeResumed)
	h.input.await(t, "one,two,", 1)
	first.Close()
	h.await(1, 0)
	clients, err := h.server.Clients(t.Context())
	if err != nil || len(clients.Sessions) != 1 || len(clients.Sessions[0].Clients) != 1 {
		t.Fatalf("%+v, %v", clients, err)
	}
	if c := clients.Sessions[0].Clients[0]; c.Kind != kindWeb || !strings.HasSuffix(c.Client, "@web") {
		t.Errorf("the client is %+v", c)
	}
	keyed := h.open()
	h.send(keyed, &wire.Hello{User: selfName(t), Keys: [][]byte{{1}}}, &wire.List{})
	h.want("a key", keyed, wire.TypeDenied)
	keyed.Close()
	h.log.await(t, "web_proxy", 1)
}

// A telling connection is that of a client that claims to be a proxy.
type telling struct{ net.Conn }

func (c telling) Write(b []byte) (int, error) {
	request := bytes.Replace(b, []byte(" HTTP/1.1\r\n"), []byte(" HTTP/1.1\r\n"+forwardedFor+": 198.51.100.1\r\n"), 1)
	if _, err := c.Conn.Write(request); err != nil {
		return 0, err
	}
	return len(b), nil
}

// A client that claims to be a proxy hides its address from rules, and so no key lets it in, but not from the log.
func TestClaimedProxyIsLogged(t *testing.T) {
	h := onWeb(t, true, func(*host) {})
	c, err := tcp.Dial(t.Context(), func(ctx context.Context, _, _ string) (net.Conn, error) {
		return websocket.Open(ctx, "ws://"+h.addr.String()+web.Socket, func(ctx context.Context, n, a string) (net.Conn, error) {
			c, err := from(localhost)(ctx, n, a)
			return telling{c}, err
		})
	}, h.addr, h.tls)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	h.send(c, &wire.Hello{User: selfName(t), Keys: [][]byte{{1}}}, &wire.List{})
	h.want("a key", c, wire.TypeDenied)
	c.Close()
	h.log.await(t, "web_proxy", 1)
	h.log.await(t, far.String(), 1)
}

// Connections that ask for nothing, or for the page alone, end within seconds. They count as those over TCP: a further one
// takes the place of an old one.
func TestStrangersOverWeb(t *testing.T) {
	t.Parallel()
	h := onWeb(t, true, func(h *host) { h.settings.MaxUnauthenticated = 8 }) // 4 for strangers
	asking := h.plain(localhost)
	io.WriteString(asking, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	var idle []net.Conn
	for range 12 {
		idle = append(idle, h.plain(localhost))
	}
	c := h.open()
	h.send(c, h.login(&wire.List{})...)
	h.want("a list beside strangers", c, wire.TypeListing)
	if answer, err := io.ReadAll(asking); err == nil && !strings.HasPrefix(string(answer), "HTTP/1.1 ") {
		t.Errorf("the page: %.20q", answer)
	}
	displaced := 0
	for _, c := range idle {
		_, err := c.Read(make([]byte, 1))
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("an idle connection: %v", err)
		}
		if errors.Is(err, syscall.ECONNRESET) {
			displaced++
		}
	}
	if displaced == 0 {
		t.Error("all of many strangers keep their places")
	}
	for start := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		metrics, err := h.server.Metrics(t.Context())
		if err != nil || time.Since(start) > patience {
			t.Fatalf("connections to the page are not counted: %v", err)
		}
		if _, count, _ := strings.Cut(string(metrics), "\nquicterm_web_pages_total "); !strings.HasPrefix(count, "0\n") {
			break
		}
	}
}

// A connection is kept for further requests while it is young, and few of the places are taken.
func TestWebConnectionEnds(t *testing.T) {
	t.Parallel()
	for places, want := range map[int]bool{1: true, 100: false} {
		h := onWeb(t, false, func(h *host) { h.settings.MaxUnauthenticated = places })
		h.open() // which gives back its place
		client := &http.Client{Transport: new(http.Transport)}
		t.Cleanup(client.CloseIdleConnections)
		if answer := h.get(client, "http://"+h.addr.String()+"/"); answer.Close != want {
			t.Errorf("of %d places: the connection ends: %t", places, answer.Close)
		}
	}
	l := &webListener{places: make(chan struct{}, 2)}
	if l.ends(&webConn{since: time.Now()}) || !l.ends(&webConn{since: time.Now().Add(-2 * webPageTime)}) {
		t.Error("a young connection ends, or an old one does not")
	}
}

// Where a client is, is known from the connection, or from a proxy that the settings name, as its last word.
func TestClientOfProxy(t *testing.T) {
	named := netip.MustParsePrefix("10.0.0.0/24")
	for _, test := range []struct{ peer, told, want string }{
		{"192.0.2.7:99", "", "192.0.2.7:99"},
		{"192.0.2.7:99", "198.51.100.1", ""},
		{"127.0.0.1:99", "", ""},
		{"127.0.0.1:99", "198.51.100.1", ""},
		{"10.0.0.9:99", "", ""},
		{"10.0.0.9:99", "198.51.100.1", "198.51.100.1:0"},
		{"10.0.0.9:99", "127.0.0.1, 198.51.100.1:7", "198.51.100.1:7"},
		{"10.0.0.9:99", "198.51.100.1, x", ""},
		{"10.0.0.9:99", "[2001:db8::1%eth0]:7", "[2001:db8::1]:7"},
	} {
		s := &Server{setup: &privsep.Setup{WebProxy: []netip.Prefix{named}}}
		peer := netip.MustParseAddrPort(test.peer)
		r, err := http.NewRequest("GET", "/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if test.told != "" {
			r.Header.Set(forwardedFor, test.told)
		}
		c := &webConn{Conn: &forwarded{nil, net.TCPAddrFromAddrPort(peer)}, proxied: peer.Addr().IsLoopback()}
		got := ""
		if client := s.client(c, r); client.IsValid() {
			got = client.String()
		}
		if got != test.want {
			t.Errorf("%s says %q: the client is at %q, want %q", test.peer, test.told, got, test.want)
		}
	}
}

// writeCertificate writes a certificate for a name, and its key.
func writeCertificate(t *testing.T, dir, name string) (certificate, key string) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	certificate, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{
		certificate: {Type: "CERTIFICATE", Bytes: cert}, key: {Type: "PRIVATE KEY", Bytes: secret},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certificate, key
}

// The page is served with the certificate of the moment. Files that do not belong together change nothing.
func TestWebCertificate(t *testing.T) {
	dir := t.TempDir()
	certificate, key := writeCertificate(t, dir, "one.example")
	h := onWeb(t, false, func(h *host) { h.settings.WebCertificate, h.settings.WebKey = certificate, key })
	shown := func() string {
		client := &http.Client{Transport: &http.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
		}}
		return h.get(client, "https://"+h.addr.String()+"/").TLS.PeerCertificates[0].DNSNames[0]
	}
	if got := shown(); got != "one.example" {
		t.Errorf("the first certificate is for %s", got)
	}
	writeCertificate(t, dir, "two.example")
	h.server.Reload(h.settings)
	if got := shown(); got != "two.example" {
		t.Errorf("the second certificate is for %s", got)
	}
	if err := os.WriteFile(key, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.server.Reload(h.settings)
	if got := shown(); got != "two.example" {
		t.Errorf("beside a broken key, the certificate is for %s", got)
	}
	h.log.await(t, "certificate cannot be read", 1)
}
