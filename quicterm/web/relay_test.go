package web

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// patience is how long anything may take on a busy machine.
const patience = time.Minute

// A page is a relay's, whose host repeats what it gets.
type page struct {
	t      *testing.T
	relay  *Relay
	secret []byte // of the link
	dialed atomic.Int32
}

func newPage(t *testing.T) *page {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &page{t: t, relay: NewRelay(l)}
	p.relay.Answer = func(context.Context) (Answer, error) { return Answer{Token: "token", Key: "key", Host: "host"}, nil }
	p.relay.Dial = func(_ context.Context, use func(io.ReadWriteCloser)) {
		p.dialed.Add(1)
		near, far := net.Pipe()
		go io.Copy(far, far)
		defer near.Close()
		use(near)
	}
	_, fragment, _ := strings.Cut(p.relay.Link(), "#s=")
	if p.secret, err = base64.RawURLEncoding.DecodeString(fragment); err != nil || len(p.secret) != secretSize {
		t.Fatal(fragment, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- p.relay.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return p
}

// open opens a WebSocket from an origin.
func (p *page) open(origin string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	options := &websocket.DialOptions{HTTPHeader: http.Header{}}
	if origin != "" {
		options.HTTPHeader.Set("Origin", origin)
	}
	ws, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(p.relay.origin, "http")+Socket, options)
	if err != nil {
		return nil, err
	}
	c := websocket.NetConn(p.t.Context(), ws, websocket.MessageBinary)
	p.t.Cleanup(func() { ws.CloseNow() })
	c.SetDeadline(time.Now().Add(patience))
	return c, nil
}

// begin opens a WebSocket of the page and proves a secret.
func (p *page) begin(kind byte, secret []byte) net.Conn {
	p.t.Helper()
	c, err := p.open(p.relay.origin)
	if err == nil {
		_, err = c.Write(append([]byte{kind}, secret...))
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

// ask returns the answer to a question with a secret.
func (p *page) ask(secret []byte) (answer Answer) {
	p.t.Helper()
	c := p.begin(question, secret)
	var size [2]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		p.t.Fatal(err)
	}
	text := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(c, text); err != nil {
		p.t.Fatal(err)
	}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Token != "token" || answer.Host != "host" {
		p.t.Fatalf("%s, %v", text, err)
	}
	return answer
}

// wantEnd waits for the end of a connection that brings nothing.
func (p *page) wantEnd(why string, c net.Conn) {
	p.t.Helper()
	if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil {
		p.t.Errorf("%s: %d bytes", why, n)
	}
}

// The link is good once. What the page gets for it proves its further connections, which lead to the host.
func TestRelay(t *testing.T) {
	p := newPage(t)
	p.wantEnd("a wrong link", p.begin(question, make([]byte, secretSize)))
	p.wantEnd("no secret of the page yet", p.begin(relayed, make([]byte, secretSize)))
	p.wantEnd("the link's secret for the host", p.begin(relayed, p.secret))
	answer := p.ask(p.secret)
	p.wantEnd("the link again", p.begin(question, p.secret))
	if n := p.dialed.Load(); n != 0 {
		t.Errorf("the host is dialed %d times before a proof", n)
	}
	secret, err := base64.RawURLEncoding.DecodeString(answer.Secret)
	if err != nil {
		t.Fatal(err)
	}
	if again := p.ask(secret); again != answer {
		t.Errorf("for a further login: %+v", again)
	}
	for range maxConnections + 2 { // that are kept: they have no place among those of strangers
		c := p.begin(relayed, secret)
		if _, err := io.WriteString(c, "hello"); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 5)
		if _, err := io.ReadFull(c, got); err != nil || string(got) != "hello" {
			t.Errorf("the host says %q, %v", got, err)
		}
	}
}

// A page of another origin, and one that has made its name mean this machine, get nothing.
func TestRelayRefusesOthers(t *testing.T) {
	p := newPage(t)
	for _, origin := range []string{"", "null", "https://attacker.example", strings.Replace(p.relay.origin, "127.0.0.1", "localhost", 1)} {
		if _, err := p.open(origin); err == nil {
			t.Errorf("a WebSocket of %q is accepted", origin)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), "GET", p.relay.origin+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "attacker.example"
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("another host: %s", answer.Status)
	}
}
