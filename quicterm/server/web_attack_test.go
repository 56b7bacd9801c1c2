//go:build linux || darwin

package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/quicterm/quicterm/migrate/carrier/tcp"
	"github.com/quicterm/quicterm/migrate/carrier/websocket"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/web"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A page of another origin gets no WebSocket, and takes no place of a client.
func TestWebRefusesOtherOrigins(t *testing.T) {
	h := onWeb(t, false, func(h *host) { h.settings.MaxUnauthenticated = 8 })
	for range 20 {
		r, err := http.NewRequest("GET", "http://"+h.addr.String()+web.Socket, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{
			"Origin": {"https://attacker.example"}, "Connection": {"Upgrade"}, "Upgrade": {"websocket"},
			"Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"MDEyMzQ1Njc4OWFiY2RlZg=="},
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusForbidden {
			t.Errorf("another origin: %s", answer.Status)
		}
	}
	h.await(0, 0)
	c := h.open()
	h.send(c, h.login(&wire.List{})...)
	h.want("a list", c, wire.TypeListing)
}

// A proxy between a client and the daemon changes what passes through it from a moment on.
type hostileProxy struct {
	net.Conn
	hostile *atomic.Bool
	change  func(b []byte, sent bool) []byte
	rest    []byte
}

func (p *hostileProxy) Write(b []byte) (int, error) {
	sent := b
	if p.hostile.Load() {
		sent = p.change(bytes.Clone(b), true)
	}
	if _, err := p.Conn.Write(sent); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (p *hostileProxy) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		received := make([]byte, 4096)
		n, err := p.Conn.Read(received)
		if err != nil {
			return 0, err
		}
		p.rest = received[:n]
		if p.hostile.Load() {
			p.rest = p.change(p.rest, false)
		}
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// Whatever a proxy does to the messages of a WebSocket, the connection ends without anything else, and the session resumes.
func TestHostileProxy(t *testing.T) {
	frame := func(payload string, masked bool) []byte {
		b := []byte{0x82, byte(len(payload))}
		if masked {
			b[1] |= 0x80
			b = append(b, 0, 0, 0, 0) // a mask that changes nothing
		}
		return append(b, payload...)
	}
	record := "\x17\x03\x03\x00\x20" + string(make([]byte, 32))
	for name, change := range map[string]func(b []byte, sent bool) []byte{
		"a bit is flipped": func(b []byte, _ bool) []byte { b[len(b)-1] ^= 1; return b },
		"a header is changed": func(b []byte, _ bool) []byte {
			b[0] ^= 0x70
			return b
		},
		"a record is inserted": func(b []byte, sent bool) []byte { return append(frame(record, sent), b...) },
		"text is inserted":     func(b []byte, sent bool) []byte { f := frame("text", sent); f[0] = 0x81; return append(f, b...) },
		"a message is repeated": func(b []byte, _ bool) []byte {
			return append(b, b...)
		},
		"it is closed": func(_ []byte, sent bool) []byte { f := frame("\x03\xe8", sent); f[0] = 0x88; return f },
	} {
		t.Run(name, func(t *testing.T) {
			h := onWeb(t, false, func(*host) {})
			hostile := new(atomic.Bool)
			c, err := tcp.Dial(t.Context(), func(ctx context.Context, _, _ string) (net.Conn, error) {
				return websocket.Open(ctx, "ws://"+h.addr.String()+web.Socket, func(ctx context.Context, n, a string) (net.Conn, error) {
					c, err := from(localhost)(ctx, n, a)
					return &hostileProxy{Conn: c, hostile: hostile, change: change}, err
				})
			}, h.addr, h.tls)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(patience))
			h.send(c, h.login(&wire.Attach{PTY: true})...)
			var attached wire.Attached
			m, err := wire.Read(c, wire.MaxMessage)
			if err == nil {
				err = m.Decode(&attached)
			}
			if err != nil {
				t.Fatal(err)
			}
			c.Write(typed(1, "one,"))
			h.input.await(t, "one,", 1)
			hostile.Store(true)
			c.Write(typed(2, "two,"))
			if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the connection does not end: %v", err)
			}
			second := h.open()
			h.host.resume(second, attached, 1, append(typed(2, "two,"), typed(3, "three,")...))
			h.want("a resume", second, wire.TypeResumed)
			h.input.await(t, "one,two,three,", 1)
		})
	}
}

// Headers that come byte by byte, and messages that are too long, end a connection. A page that never reads holds up
// nobody else.
func TestSlowPages(t *testing.T) {
	t.Parallel()
	h := onWeb(t, false, func(*host) {})
	slow := h.plain(localhost)
	io.WriteString(slow, "GET / HTTP/1.1\r\nX: ")
	go io.Copy(io.Discard, slow)
	ended := make(chan time.Duration)
	go func() {
		begun := time.Now()
		for {
			if _, err := slow.Write([]byte("x")); err != nil || time.Since(begun) > patience {
				ended <- time.Since(begun)
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	long, err := websocket.Open(t.Context(), "ws://"+h.addr.String()+web.Socket, from(localhost))
	if err != nil {
		t.Fatal(err)
	}
	defer long.Close()
	long.SetDeadline(time.Now().Add(patience))
	long.(interface{ NetConn() net.Conn }).NetConn().Write([]byte{0x82, 0xff, 0, 0, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4}) // 4 GiB
	if n, err := io.Copy(io.Discard, long); err != nil && n == 0 {
		t.Logf("a message of 4 GiB: %v", err)
	}
	deaf := h.open()
	h.send(deaf, h.login(&wire.Attach{PTY: true})...)
	go func() {
		for seq := uint64(1); ; seq++ {
			if _, err := deaf.Write(typed(seq, string(make([]byte, 1024)))); err != nil {
				return
			}
		}
	}()
	for range 20 {
		c := h.open()
		h.send(c, h.login(&wire.List{})...)
		h.want("a list beside a page that does not read", c, wire.TypeListing)
		c.Close()
	}
	deaf.Close()
	if took := <-ended; took > patience {
		t.Errorf("slow headers are read for %v", took)
	}
}

// Signatures by a key of RSA have the limit of those by a host key.
func TestWebRSA(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{unauthenticated: newUnauthenticated(8)}
	s.state.Store(&privsep.State{WebChain: [][]byte{certificate}})
	s.unauthenticated.rsa = rate.NewLimiter(0, 1)
	hello := &tls.ClientHelloInfo{Conn: &forwarded{nil, net.TCPAddrFromAddrPort(far)}}
	if _, err := s.webCertificate(hello); err != nil {
		t.Fatal(err)
	}
	if _, err := s.webCertificate(hello); !errors.Is(err, errBusy) {
		t.Errorf("a signature beyond the limit: %v", err)
	}
}
